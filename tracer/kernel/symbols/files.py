"""Symbol tables of the files that processes have mapped: found whichever way still leads to them, and few at a time.

A stripped file's functions are taken from its separate debug file, where the node has that, else from what it exports.
"""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tracer.kernel.symbols.elf import DYNSYM, SymbolTable, read_symbols
from tracer.kernel.symbols.headers import NO_HEADERS, Headers, read_headers
from tracer.kernel.symbols.mappings import VDSO, Mapping
from tracer.kernel.symbols.opening import open_regular

__all__ = ["Files"]

#: Symbols of all tables together, 16 bytes each; one table more is kept whatever its size.
MAX_TOTAL = 1 << 22
MAX_TABLES = 512

#: Where packages and debuginfod-find put debug files, of the node itself: those of containers are their owners'.
DEBUG_FILES = Path("/usr/lib/debug/.build-id")

_Identity = tuple[int, int, int, int]


@dataclass(frozen=True)
class _Known:
    """What is known of one file. ``debug`` is the debug file that its table is of, empty where that's its own."""

    headers: Headers
    table: SymbolTable
    debug: bytes = b""
    identity: _Identity | None = None

    def address(self, offset: int) -> int:
        """Return the address of an offset into the file; the offset itself where no segment holds it."""
        for segment in self.headers.segments:
            if 0 <= offset - segment.offset < segment.size:
                return offset - segment.offset + segment.address
        return offset


class Files:
    """The symbol tables used last."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Identity, _Known] = OrderedDict()

    def resolve(self, proc: str, mapping: Mapping, addresses: list[int]) -> tuple[list[bytes], bytes]:
        """Return the functions at the process's ``addresses``, all in ``mapping``, and the file's build id.

        Either is empty where there is none. ``proc`` is the process's /proc/PID, empty for one of the past. Raises
        OSError when its file can't be read.
        """
        with _open(proc, mapping) as file:
            known = self._about(file.fileno())
            if mapping.build_id not in (b"", known.headers.build_id):
                raise FileNotFoundError(mapping.path.decode(errors="replace"))
            wanted = [known.address(address - mapping.start + mapping.offset) for address in addresses]
            if not known.debug:
                return known.table.resolve(wanted, file.fileno()), known.headers.build_id
        return self._in_debug_file(known, wanted), known.headers.build_id

    def _about(self, descriptor: int) -> _Known:
        key = _identity(descriptor)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _read(descriptor)
            while len(self._known) > MAX_TABLES or (len(self._known) > 1 and self._total() > MAX_TOTAL):
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return known

    def _total(self) -> int:
        return sum(len(known.table) for known in self._known.values())

    def _in_debug_file(self, known: _Known, addresses: list[int]) -> list[bytes]:
        with os.fdopen(open_regular(known.debug), "rb") as file:
            if _identity(file.fileno()) != known.identity:  # replaced meanwhile
                return [b""] * len(addresses)
            return known.table.resolve(addresses, file.fileno())


def _read(descriptor: int) -> _Known:
    headers = read_headers(descriptor)
    own = read_symbols(descriptor, headers)
    if len(own):
        return _Known(headers, own)
    return _of_debug_file(headers) or _Known(headers, read_symbols(descriptor, headers, DYNSYM))


def _of_debug_file(headers: Headers) -> _Known | None:
    build_id = headers.build_id.decode()
    if not build_id:
        return None
    path = os.fsencode(DEBUG_FILES / build_id[:2] / f"{build_id[2:]}.debug")
    try:
        file = os.fdopen(open_regular(path), "rb")
    except OSError:
        return None
    with file:
        about = read_headers(file.fileno())
        table = read_symbols(file.fileno(), about if about.build_id == headers.build_id else NO_HEADERS)
        return _Known(headers, table, path, _identity(file.fileno())) if len(table) else None


def _identity(descriptor: int) -> _Identity:
    about = os.fstat(descriptor)
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


@contextmanager
def _open(proc: str, mapping: Mapping) -> Iterator[IO[bytes]]:
    """Open the mapped file itself: deleted ones, too, and in any mount namespace."""
    if mapping.path == VDSO:
        with _vdso() as file:
            yield file
        return
    try:
        if not proc:
            raise PermissionError
        descriptor = open_regular(os.fsencode(f"{proc}/map_files/{mapping.start:x}-{mapping.end:x}"))
    except PermissionError:
        # map_files takes CAP_CHECKPOINT_RESTORE; the path may by now lead to another file. Where maps shows another
        # device than stat does (btrfs, overlayfs), there is no telling: no symbols rather than wrong ones.
        descriptor = open_regular(os.fsencode(f"{proc}/root" if proc else "") + mapping.path)
        about = os.fstat(descriptor)
        if not mapping.build_id and (about.st_dev, about.st_ino) != mapping.file:
            os.close(descriptor)
            raise FileNotFoundError(mapping.path.decode(errors="replace")) from None
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _vdso() -> IO[bytes]:
    """Copy the vDSO, which is the same in every 64-bit process, from our own memory into a file."""
    (line,) = [line for line in Path("/proc/self/maps").read_bytes().splitlines() if line.endswith(VDSO)]
    start, _, end = line.partition(b" ")[0].partition(b"-")
    memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        image = os.pread(memory, int(end, 16) - int(start, 16), int(start, 16))
    finally:
        os.close(memory)
    file = os.fdopen(os.memfd_create("vdso", os.MFD_CLOEXEC), "w+b", buffering=0)
    file.write(image)
    file.seek(io.SEEK_SET)
    return file
