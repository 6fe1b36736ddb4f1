"""Append records to a box, segment after segment. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tracer.blackbox.layout import BLOCK, HEAD_BYTES, Geometry, Note, SegmentHead, blocks_of, pack_record

__all__ = ["Disk", "File", "HEADER_KIND", "Log", "Position"]

HEADER_KIND = 1  # Kind.HEADER of tracer.recording, which the writer has no need to import


class Disk(Protocol):
    """Where the blocks go; ``OSError`` when it refuses."""

    def write(self, pieces: Sequence[bytes | memoryview], offset: int) -> None:
        """Write ``pieces`` one after the other."""

    def sync(self) -> None:
        """Return when all that was written is durable."""


class File:
    """A disk that is a file, by its descriptor."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def write(self, pieces: Sequence[bytes | memoryview], offset: int) -> None:
        """Write ``pieces`` one after the other; a file that is preallocated takes them whole, or not at all."""
        size = sum(map(len, pieces))
        if os.pwritev(self.fd, pieces, offset) != size:
            raise OSError(5, "the disk took a part of a record only")

    def sync(self) -> None:
        """Wait for the disk. Only data: nothing else of a preallocated file changes."""
        os.fdatasync(self.fd)


@dataclass
class Position:
    """How far a hand has come: its latest segment's serial, and that segment's place in the box.

    Two hands may write one box, each in ``places`` of its own; the first has even serials, the second odd ones.
    """

    serial: int
    number: int
    places: range

    @classmethod
    def of(cls, geometry: Geometry, hand: int = 0, hands: int = 1) -> Position:
        """Return where a hand begins in an empty box."""
        places = geometry.places(hand, hands)
        return cls(hand, places[-1], places)

    def advance(self) -> None:
        """Go on to the next segment."""
        self.serial += 2
        self.number = self.number + 1 if self.number + 1 in self.places else self.places[0]


class Log:
    """A box being written by one hand. Every instance begins a segment of its own: what is there stays as it is.

    ``header`` is the frame with which every segment begins.
    """

    def __init__(self, disk: Disk, geometry: Geometry, header: bytes, *, run: int, boot_id: str, at: Position) -> None:
        self.position = at
        self._disk = disk
        self._geometry = geometry
        self._header = header
        self._run = run
        self._boot_id = boot_id
        self._offset = geometry.segment_bytes  # of the next record in its segment: none is open yet

    @property
    def largest_frame(self) -> int:
        """How large a frame may be; larger ones find no room in any segment."""
        return self._geometry.segment_bytes - (1 + blocks_of(len(self._header))) * BLOCK - HEAD_BYTES

    def append(self, frame: bytes | memoryview, note: Note) -> None:
        """Write one record; ``sync`` makes it durable. Raises OSError when the disk refuses, or it is too large.

        What was refused is missing in the sequence.
        """
        if len(frame) > self.largest_frame:
            raise OSError(27, "a frame is larger than a segment of the black box")
        if self._offset + blocks_of(len(frame)) * BLOCK > self._geometry.segment_bytes:
            self._begin(note)
        self._write(frame, note)

    def sync(self) -> None:
        """Make everything durable. Raises OSError."""
        self._disk.sync()

    def _begin(self, note: Note) -> None:
        # Else what is not durable yet could fill several segments, and take the place of the last that is.
        self._disk.sync()
        at = self.position
        at.advance()
        head = SegmentHead(self._geometry, at.number, at.serial, self._run, self._boot_id)
        self._offset = BLOCK
        self._disk.write([head.pack()], at.number * self._geometry.segment_bytes)
        self._write(self._header, replace(note, kind=HEADER_KIND))

    def _write(self, frame: bytes | memoryview, note: Note) -> None:
        offset = self.position.number * self._geometry.segment_bytes + self._offset
        self._offset += blocks_of(len(frame)) * BLOCK
        self._disk.write(pack_record(note, self.position.serial, frame), offset)
