"""Functions of an ELF file by address: headers through pyelftools, the symbol table itself as numpy arrays.

pyelftools makes a Python object of every symbol, 22 µs and 200 bytes each; a big C++ library has millions. Names stay
in the file until they're asked for. The file is read, never mapped: whoever owns it may cut it short at any time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_NAME", "MAX_SYMBOLS", "SymbolTable", "read_symbols"]

#: Longer names are cut. Mangled C++ names can have thousands of characters.
MAX_NAME = 192

#: Of one file: 16 bytes each in memory. Beyond those, functions have no names.
MAX_SYMBOLS = 1 << 21

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_AT_ONCE = 1 << 16
_FUNCTIONS = np.frombuffer(bytes([2, 10]), dtype="u1")  # STT_FUNC, STT_GNU_IFUNC
_LOCAL = 0
_LARGEST_OFFSET = 1 << 62
_SEGMENTS = 256
_SECTIONS = 4096
_CACHED_NAMES = 1 << 12


@dataclass(frozen=True)
class Segment:
    """A loaded part of the file: ``offset`` in the file is ``address`` in the symbol table's terms."""

    offset: int
    address: int
    size: int


class SymbolTable:
    """The functions of one file, without their names.

    ``segments`` turn file offsets into addresses. An empty table is of a file that isn't ELF, or has no symbols.
    """

    def __init__(
        self,
        segments: list[Segment],
        addresses: npt.NDArray[np.uint64],
        sizes: npt.NDArray[np.uint32],
        names: npt.NDArray[np.uint32],
        strings: int,
    ) -> None:
        self._segments = segments
        self._addresses, self._sizes, self._names, self._strings = addresses, sizes, names, strings
        self._cached: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def address(self, offset: int) -> int:
        """Return the address of an offset into the file; the offset itself where no segment holds it."""
        for segment in self._segments:
            if 0 <= offset - segment.offset < segment.size:
                return offset - segment.offset + segment.address
        return offset

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
            name = self._cached[place] = os.pread(descriptor, MAX_NAME, at).partition(b"\0")[0]
        return name


def read_symbols(file: IO[bytes]) -> SymbolTable:
    """Read the functions of ``.symtab``, or of ``.dynsym`` in a stripped file.

    64-bit little-endian files only; of any others, and of broken ones, the table is empty.
    """
    from elftools.elf.elffile import ELFFile

    segments: list[Segment] = []
    try:
        elf = ELFFile(file)
        if elf.elfclass != 64 or not elf.little_endian or elf.num_sections() > _SECTIONS:
            return _table([], [], 0)
        segments = [
            Segment(header["p_offset"], header["p_vaddr"], header["p_filesz"])
            for header in (elf.get_segment(index).header for index in range(min(elf.num_segments(), _SEGMENTS)))
            if header["p_type"] == "PT_LOAD"
        ]
        for name in (".symtab", ".dynsym"):
            section = elf.get_section_by_name(name)
            if section is None or section["sh_type"] == "SHT_NOBITS":
                continue
            strings = elf.get_section(section["sh_link"])["sh_offset"]
            parts = _functions(file.fileno(), section["sh_offset"], section["sh_size"])
            if parts and strings < _LARGEST_OFFSET:
                return _table(segments, parts, strings)
    except Exception:  # pyelftools raises what its parts raise when a file is not what it says
        return _table(segments, [], 0)
    return _table(segments, [], 0)


def _functions(descriptor: int, offset: int, size: int) -> list[np.ndarray]:
    """Return the symbols that are defined functions, in pieces as they were read."""
    parts: list[np.ndarray] = []
    total = 0
    step = _AT_ONCE * _SYMBOL.itemsize
    for at in range(offset, offset + size, step):
        data = os.pread(descriptor, min(step, offset + size - at), at)
        symbols = np.frombuffer(data, dtype=_SYMBOL, count=len(data) // _SYMBOL.itemsize)
        chosen = symbols[np.isin(symbols["info"] & 15, _FUNCTIONS) & (symbols["section"] > 0) & (symbols["value"] > 0)]
        total += len(chosen)
        if not len(symbols) or total > MAX_SYMBOLS:
            break
        if len(chosen):
            parts.append(chosen)
    return parts


def _table(segments: list[Segment], parts: list[np.ndarray], strings: int) -> SymbolTable:
    symbols = np.concatenate(parts) if parts else np.zeros(0, dtype=_SYMBOL)
    # Of several names of one address, a global one: sorted so that it comes first.
    order = np.lexsort((symbols["info"] >> 4 == _LOCAL, symbols["value"]))
    addresses, first = np.unique(symbols["value"][order], return_index=True)
    chosen = symbols[order][first]
    sizes = np.minimum(chosen["size"], 0xFFFFFFFF).astype(np.uint32)
    return SymbolTable(segments, addresses.astype(np.uint64), sizes, chosen["name"].astype(np.uint32), strings)
