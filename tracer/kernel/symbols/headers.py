"""What an ELF file says of itself: where its parts are loaded, where its symbols are, which build it is.

Three tables of fixed layout, read as numpy arrays. Names of sections are not looked at, since a section's type says
what it is: so a string without an end, in a file of any size, costs nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

__all__ = ["LARGEST_OFFSET", "NO_HEADERS", "Headers", "Section", "Segment", "read_headers"]

# Source: elf(5), Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr.
_FILE = np.dtype(
    [
        *(("magic", "S4"), ("bits", "u1"), ("order", "u1"), ("ident", "V10"), ("type", "<u2"), ("machine", "<u2")),
        *(("version", "<u4"), ("entry", "<u8"), ("segments", "<u8"), ("sections", "<u8"), ("flags", "<u4")),
        *(("size", "<u2"), ("segment_size", "<u2"), ("segment_count", "<u2"), ("section_size", "<u2")),
        *(("section_count", "<u2"), ("names", "<u2")),
    ]
)
_SEGMENT = np.dtype(
    [
        *(("type", "<u4"), ("flags", "<u4"), ("offset", "<u8"), ("address", "<u8"), ("physical", "<u8")),
        *(("size", "<u8"), ("memory", "<u8"), ("align", "<u8")),
    ]
)
_SECTION = np.dtype(
    [
        *(("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8")),
        *(("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8")),
    ]
)
_NOTE = np.dtype([("name_size", "<u4"), ("size", "<u4"), ("type", "<u4")])
_LOAD, _NOTES = 1, 4  # PT_LOAD, PT_NOTE
_BUILD_ID = 3  # NT_GNU_BUILD_ID

LARGEST_OFFSET = 1 << 62
_SEGMENTS = 256
_SECTIONS = 4096
_NOTE_BYTES = 4096
_LONGEST_ID = 20  # SHA-1; ids of other lengths are shorter, or whoever made them chose them


@dataclass(frozen=True)
class Segment:
    """A loaded part of the file: ``offset`` in the file is ``address`` in the symbol table's terms."""

    offset: int
    address: int
    size: int


@dataclass(frozen=True)
class Section:
    """``kind`` is SHT_…, ``link`` the number of another section."""

    kind: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class Headers:
    """``build_id`` is in hexadecimal, empty where the file has none."""

    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    build_id: bytes


NO_HEADERS = Headers((), (), b"")


def read_headers(descriptor: int) -> Headers:
    """Return what is in the file's headers: nothing, unless it is a 64-bit little-endian ELF file."""
    found = _array(descriptor, 0, 1, _FILE)
    if not len(found) or found["magic"][0] != b"\x7fELF" or (found["bits"][0], found["order"][0]) != (2, 1):
        return NO_HEADERS
    file = {name: int(found[name][0]) for name in ("segments", "sections", "segment_count", "section_count")}
    if file["section_count"] > _SECTIONS:
        return NO_HEADERS
    segments = _array(descriptor, file["segments"], min(file["segment_count"], _SEGMENTS), _SEGMENT)
    sections = _array(descriptor, file["sections"], file["section_count"], _SECTION)
    return Headers(
        tuple(Segment(*map(int, one)) for one in segments[segments["type"] == _LOAD][["offset", "address", "size"]]),
        tuple(Section(*map(int, one)) for one in sections[["type", "offset", "size", "link"]]),
        _build_id(descriptor, segments[segments["type"] == _NOTES]),
    )


def _build_id(descriptor: int, segments: np.ndarray) -> bytes:
    for offset, size in segments[["offset", "size"]].tolist():
        at, end = offset, offset + min(size, _NOTE_BYTES)
        while at < end and len(notes := _array(descriptor, at, 1, _NOTE)):
            name_size, length, kind = map(int, notes[0])
            name_at, at = at + _NOTE.itemsize, at + _NOTE.itemsize + _padded(name_size) + _padded(length)
            if kind == _BUILD_ID and length <= _LONGEST_ID and _bytes(descriptor, name_at, name_size) == b"GNU\0":
                return _bytes(descriptor, name_at + _padded(name_size), length).hex().encode()
    return b""


def _padded(size: int) -> int:
    return size + -size % 4


def _array(descriptor: int, offset: int, count: int, dtype: np.dtype) -> np.ndarray:
    """Return as many whole items as the file has there."""
    data = _bytes(descriptor, offset, count * dtype.itemsize)
    return np.frombuffer(data, dtype, len(data) // dtype.itemsize)


def _bytes(descriptor: int, offset: int, size: int) -> bytes:
    return os.pread(descriptor, min(size, _SECTIONS * _SECTION.itemsize), offset) if offset < LARGEST_OFFSET else b""
