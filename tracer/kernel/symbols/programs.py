"""One program of a process: when it began, and what it has mapped since, as the kernel's records tell."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field

from tracer.kernel.sideband import Record
from tracer.kernel.symbols.mappings import Mapping

__all__ = ["Program"]

_MAX_MAPPINGS = 1 << 8

# Source: PERF_RECORD_MMAP2 in include/uapi/linux/perf_event.h, from addr on.
_MMAP2 = struct.Struct("<QQQ24sII")
_NUMBERS = struct.Struct("<IIQQ")  # of the file: major, minor, inode, its generation
_HAS_BUILD_ID = 1 << 14
_ANONYMOUS = b"//anon"


@dataclass
class Program:
    """From fork or exec to exec or exit; ``began`` is FORK, EXEC, or MAPPED: before anything was seen of it.

    ``mapped`` came since then; a forked one has besides what its ``parent`` (pid, start) had at ``start_ns``.
    """

    start_ns: int
    began: int
    parent: tuple[int, int] = (0, 0)
    mapped: list[Record] = field(default_factory=list)
    whole: bool = True

    def add(self, record: Record) -> bool:
        """Note what it has mapped; return whether there was room."""
        self.whole = self.whole and len(self.mapped) < _MAX_MAPPINGS
        if self.whole:
            self.mapped.append(record)
        return self.whole

    def mappings(self, until_ns: int | None = None) -> list[Mapping]:
        """Return what was mapped, in that order, until then."""
        return [_mapping(one) for one in self.mapped if until_ns is None or one.time_ns <= until_ns]

    def ranges_since(self, since_ns: int) -> list[tuple[int, int]]:
        """Return where something was mapped after then."""
        return [(one.start, one.end) for one in map(_mapping, (r for r in self.mapped if r.time_ns > since_ns))]


def _mapping(record: Record) -> Mapping:
    start, size, offset, file, _, _ = _MMAP2.unpack_from(record.body)
    path = record.body[_MMAP2.size :].rstrip(b"\0")
    numbers, build_id = (0, 0), b""
    if record.parent & _HAS_BUILD_ID:
        build_id = file[4 : 4 + file[0]].hex().encode()
    else:
        major, minor, inode, _ = _NUMBERS.unpack(file)
        numbers = os.makedev(major, minor), inode
    return Mapping(start, start + size, offset, numbers, b"" if path == _ANONYMOUS else path, build_id)
