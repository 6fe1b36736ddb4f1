"""Append records to a box, segment after segment. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from tracer.blackbox.layout import BLOCK, HEAD_BYTES, Geometry, RecordHead, SegmentHead, blocks_of, pack_record

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


class Position:
    """How far a box is: the serial of its latest segment, that segment's place, the sequence of the next record."""

    def __init__(self, serial: int = 0, number: int = -1, sequence: int = 0) -> None:
        self.serial = serial
        self.number = number
        self.sequence = sequence


class Log:
    """A box being written. Every instance begins a segment of its own: what is there stays as it is.

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

    def append(
        self, frame: bytes | memoryview, kind: int, dropped: int = 0, monotonic_ns: int = 0, unix_ns: int = 0
    ) -> None:
        """Write one record; ``sync`` makes it durable. Raises OSError when the disk refuses, or it is too large.

        What was refused has used up its place and its sequence, which shows that something is missing.
        """
        if len(frame) > self.largest_frame:
            self.position.sequence += 1
            raise OSError(27, "a frame is larger than a segment of the black box")
        if self._offset + blocks_of(len(frame)) * BLOCK > self._geometry.segment_bytes:
            self._begin(dropped, monotonic_ns, unix_ns)
        self._write(frame, kind, dropped, monotonic_ns, unix_ns)

    def sync(self) -> None:
        """Make everything durable. Raises OSError."""
        self._disk.sync()

    def _begin(self, dropped: int, monotonic_ns: int, unix_ns: int) -> None:
        # Else what is not durable yet could fill several segments, and take the place of the last that is.
        self._disk.sync()
        at = self.position
        at.serial, at.number = at.serial + 1, (at.number + 1) % self._geometry.segments
        head = SegmentHead(self._geometry, at.number, at.serial, self._run, self._boot_id)
        self._offset = BLOCK
        self._disk.write([head.pack()], at.number * self._geometry.segment_bytes)
        self._write(self._header, HEADER_KIND, dropped, monotonic_ns, unix_ns)

    def _write(self, frame: bytes | memoryview, kind: int, dropped: int, monotonic_ns: int, unix_ns: int) -> None:
        at = self.position
        head = RecordHead(kind, at.serial, at.sequence, dropped, monotonic_ns, unix_ns, len(frame))
        offset = at.number * self._geometry.segment_bytes + self._offset
        at.sequence += 1
        self._offset += head.blocks * BLOCK
        self._disk.write(pack_record(head, frame), offset)
