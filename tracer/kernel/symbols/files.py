"""Symbol tables of the files that processes have mapped: found whichever way still leads to them, and few at a time."""

from __future__ import annotations

import io
import os
import stat
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tracer.kernel.symbols.elf import SymbolTable, read_symbols
from tracer.kernel.symbols.mappings import Mapping

__all__ = ["Files"]

#: Symbols of all tables together, 16 bytes each; one table more is kept whatever its size.
MAX_TOTAL = 1 << 22
MAX_TABLES = 512

_VDSO = b"[vdso]"


class Files:
    """The symbol tables used last."""

    def __init__(self) -> None:
        self._tables: OrderedDict[tuple[int, ...], SymbolTable] = OrderedDict()

    def resolve(self, proc: str, mapping: Mapping, addresses: list[int]) -> list[bytes]:
        """Return the functions at the process's ``addresses``, all in ``mapping``; empty for those without one.

        ``proc`` is the process's /proc/PID. Raises OSError when its file can't be read.
        """
        with _open(proc, mapping) as file:
            table = self._table(file)
            offsets = [address - mapping.start + mapping.offset for address in addresses]
            return table.resolve([table.address(offset) for offset in offsets], file.fileno())

    def _table(self, file: IO[bytes]) -> SymbolTable:
        about = os.fstat(file.fileno())
        key = about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = read_symbols(file)
            while len(self._tables) > MAX_TABLES or (len(self._tables) > 1 and self._total() > MAX_TOTAL):
                self._tables.popitem(last=False)
        self._tables.move_to_end(key)
        return table

    def _total(self) -> int:
        return sum(map(len, self._tables.values()))


@contextmanager
def _open(proc: str, mapping: Mapping) -> Iterator[IO[bytes]]:
    """Open the mapped file itself: deleted ones, too, and in any mount namespace."""
    if mapping.path == _VDSO:
        with _vdso() as file:
            yield file
        return
    direct = f"{proc}/map_files/{mapping.start:x}-{mapping.end:x}"
    try:
        descriptor = _open_regular(os.fsencode(direct))
    except PermissionError:
        # map_files takes CAP_CHECKPOINT_RESTORE; the path may by now lead to another file. Where maps shows another
        # device than stat does (btrfs, overlayfs), there is no telling: no symbols rather than wrong ones.
        descriptor = _open_regular(os.fsencode(f"{proc}/root") + mapping.path)
        about = os.fstat(descriptor)
        if (about.st_dev, about.st_ino) != mapping.file:
            os.close(descriptor)
            raise FileNotFoundError(mapping.path.decode(errors="replace")) from None
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _open_regular(path: bytes) -> int:
    # Asked before it is opened: opening a device can do things.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise FileNotFoundError(path.decode(errors="replace"))
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _vdso() -> IO[bytes]:
    """Copy the vDSO, which is the same in every 64-bit process, from our own memory into a file."""
    (line,) = [line for line in Path("/proc/self/maps").read_bytes().splitlines() if line.endswith(_VDSO)]
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
