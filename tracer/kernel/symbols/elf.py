"""Functions of an ELF file by address, its symbol table read as numpy arrays.

A library that makes a Python object of every symbol takes 22 µs and 200 bytes each, and a big C++ library has millions.
Names stay in the file until they're asked for. The file is read, never mapped: whoever owns it may cut it short at any
time.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from tracer.kernel.symbols.demangle import LONGEST_MANGLED, demangled
from tracer.kernel.symbols.headers import LARGEST_OFFSET, Headers, Section

__all__ = ["DYNSYM", "MAX_NAME", "MAX_SYMBOLS", "SYMTAB", "SymbolTable", "read_symbols"]

#: Longer names are cut. Templates of C++ can have thousands of characters.
MAX_NAME = 192

#: Of one file: 16 bytes each in memory. Beyond those, functions have no names.
MAX_SYMBOLS = 1 << 21

SYMTAB, DYNSYM = 2, 11  # SHT_SYMTAB, SHT_DYNSYM: the second is what a stripped file keeps

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_AT_ONCE = 1 << 16
_MOST_READ = 4 * MAX_SYMBOLS  # of a file that is all symbols, or a hole
_FUNCTIONS = np.frombuffer(bytes([2, 10]), dtype="u1")  # STT_FUNC, STT_GNU_IFUNC
_LOCAL = 0
_CACHED_NAMES = 1 << 12


class SymbolTable:
    """The functions of one file by address, without their names; ``strings`` is where those are."""

    def __init__(
        self,
        addresses: npt.NDArray[np.uint64],
        sizes: npt.NDArray[np.uint32],
        names: npt.NDArray[np.uint32],
        strings: int,
    ) -> None:
        self._addresses, self._sizes, self._names, self._strings = addresses, sizes, names, strings
        self._cached: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def resolve(self, addresses: list[int], descriptor: int) -> list[bytes]:
        """Return the function at each address, empty for none. ``descriptor`` is of the file, to read names from."""
        places = np.searchsorted(self._addresses, np.array(addresses, dtype=np.uint64), side="right") - 1
        return [self._name(int(place), address, descriptor) for place, address in zip(places, addresses, strict=True)]

    def _name(self, place: int, address: int, descriptor: int) -> bytes:
        # Assembly has functions of size 0: those reach up to the next one.
        if place < 0 or (self._sizes[place] and address >= int(self._addresses[place]) + int(self._sizes[place])):
            return b""
        name = self._cached.get(place)
        if name is None:
            if len(self._cached) >= _CACHED_NAMES:
                self._cached.clear()
            at = self._strings + int(self._names[place])
            mangled = os.pread(descriptor, LONGEST_MANGLED, at).partition(b"\0")[0]
            name = self._cached[place] = demangled(mangled)[:MAX_NAME]
        return name


def read_symbols(descriptor: int, headers: Headers, kind: int = SYMTAB) -> SymbolTable:
    """Read the functions of the file's section of one ``kind``; none where it has no such section."""
    for section in headers.sections:
        if section.kind == kind and section.link < len(headers.sections):
            strings = headers.sections[section.link].offset
            if strings < LARGEST_OFFSET:
                return _table(_functions(descriptor, section), strings)
    return _table([], 0)


def _functions(descriptor: int, section: Section) -> list[np.ndarray]:
    """Return the symbols that are defined functions, in pieces as they were read."""
    parts: list[np.ndarray] = []
    total = 0
    size = min(section.size, _MOST_READ * _SYMBOL.itemsize)
    step = _AT_ONCE * _SYMBOL.itemsize
    for at in range(section.offset, min(section.offset + size, LARGEST_OFFSET), step):
        data = os.pread(descriptor, min(step, section.offset + size - at), at)
        symbols = np.frombuffer(data, dtype=_SYMBOL, count=len(data) // _SYMBOL.itemsize)
        chosen = symbols[np.isin(symbols["info"] & 15, _FUNCTIONS) & (symbols["section"] > 0) & (symbols["value"] > 0)]
        total += len(chosen)
        if not len(symbols) or total > MAX_SYMBOLS:
            break
        if len(chosen):
            parts.append(chosen)
    return parts


def _table(parts: list[np.ndarray], strings: int) -> SymbolTable:
    symbols = np.concatenate(parts) if parts else np.zeros(0, dtype=_SYMBOL)
    # Of several names of one address, a global one: sorted so that it comes first.
    order = np.lexsort((symbols["info"] >> 4 == _LOCAL, symbols["value"]))
    addresses, first = np.unique(symbols["value"][order], return_index=True)
    chosen = symbols[order][first]
    sizes = np.minimum(chosen["size"], 0xFFFFFFFF).astype(np.uint32)
    return SymbolTable(addresses.astype(np.uint64), sizes, chosen["name"].astype(np.uint32), strings)
