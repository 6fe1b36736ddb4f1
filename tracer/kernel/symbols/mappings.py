"""Where a process has which file in memory: the executable part of /proc/PID/maps."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tracer import brackets

__all__ = ["ANONYMOUS", "VDSO", "Mapping", "Mappings"]

#: The module of memory that has no file.
ANONYMOUS = brackets.ANONYMOUS.encode()
#: What the kernel calls its part of every process.
VDSO = brackets.VDSO.encode()
_DELETED = b" (deleted)"
#: Files that are none on disk: some runtimes share what they compile in one, others run a program from it.
_MADE = (b"/memfd:", b"/dev/zero")

#: No process needs more; one that makes as many has the rest unresolved.
MAX_MAPPINGS = 1 << 14


@dataclass(frozen=True)
class Mapping:
    """One executable range of addresses.

    ``file`` is its device and inode, as stat(2) gives them; ``path`` the kernel's text, empty for anonymous memory.
    ``build_id`` (in hexadecimal) stands for the former where the kernel has told that instead.
    """

    start: int
    end: int
    offset: int
    file: tuple[int, int]
    path: bytes
    build_id: bytes = b""

    @property
    def module(self) -> bytes:
        """The file's name without its folder, or the kernel's name in brackets."""
        if self.path.startswith(b"["):
            return self.path
        return self.path.removesuffix(_DELETED).rpartition(b"/")[2] or ANONYMOUS

    @property
    def has_file(self) -> bool:
        """Whether its functions may be in a file; the vDSO counts as one."""
        return any(self.file) or bool(self.build_id) or self.path == VDSO

    @property
    def may_be_made(self) -> bool:
        """Whether its functions may have been made while the process runs."""
        return not self.has_file or self.path.startswith(_MADE)


class Mappings:
    """The executable ranges of one process at one moment; none overlaps another one."""

    def __init__(self, mappings: Iterable[Mapping] = ()) -> None:
        self._mappings = sorted(mappings, key=lambda mapping: mapping.start)
        self._starts = [mapping.start for mapping in self._mappings]

    @classmethod
    def parse(cls, text: bytes) -> Mappings:
        """Read /proc/PID/maps."""
        return cls(mapping for mapping in map(_parse, _executable(text)) if mapping)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of: a program that runs has something."""
        return not self._mappings

    def overlaid(self, later: Iterable[Mapping]) -> Mappings:
        """Return these and what was mapped ``later``, in that order, which takes the place of what was there."""
        left = self._mappings
        for mapping in later:
            left = [*_without(left, mapping.start, mapping.end), mapping]
        return Mappings(left)

    def without(self, ranges: Iterable[tuple[int, int]]) -> Mappings:
        """Return what lies outside of ranges of addresses."""
        left = self._mappings
        for start, end in ranges:
            left = _without(left, start, end)
        return Mappings(left)

    def find(self, address: int) -> Mapping | None:
        """Return the range that holds an address."""
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address >= self._mappings[place].end:
            return None
        return self._mappings[place]


def _without(mappings: list[Mapping], start: int, end: int) -> list[Mapping]:
    return [part for mapping in mappings for part in _outside(mapping, start, end)]


def _outside(mapping: Mapping, start: int, end: int) -> list[Mapping]:
    if mapping.end <= start or end <= mapping.start:
        return [mapping]
    parts = [replace(mapping, end=start)] if mapping.start < start else []
    if end < mapping.end:
        parts.append(replace(mapping, start=end, offset=mapping.offset + end - mapping.start))
    return parts


def _executable(text: bytes) -> list[bytes]:
    # "55d0c0a00000-55d0c0a25000 r-xp 00002000 fe:01 1234    /usr/bin/cat"
    return [line for line in text.splitlines() if line.partition(b" ")[2][2:3] == b"x"][:MAX_MAPPINGS]


def _parse(line: bytes) -> Mapping | None:
    fields = line.split(None, 5)
    try:
        start, _, end = fields[0].partition(b"-")
        path = fields[5] if len(fields) > 5 else b""
        major, _, minor = fields[3].partition(b":")
        file = os.makedev(int(major, 16), int(minor, 16)), int(fields[4])
        return Mapping(int(start, 16), int(end, 16), int(fields[2], 16), file, path)
    except (ValueError, IndexError):
        return None
