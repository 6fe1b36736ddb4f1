"""A box on disk: segments of blocks, each record checked and bound to its segment. Standard library only.

::

    box      SEGMENTS segments of equal size, used in turn
    segment  one block with its head, then records; the first is the recording's header
    record   a head, then one frame as in a recording; it begins on a block and nothing shares its last one

Blocks are written once per turn: what was made durable is never written again until its segment's next turn, so that a
torn write can only harm itself. A record says the serial of its segment, by which what is left of an
earlier turn is told from what belongs here.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from tracer.errors import OutputError

__all__ = [
    "BLOCK",
    "DEFAULT_SIZE",
    "HEAD_BYTES",
    "LEAST_SIZE",
    "MOST_SIZE",
    "Geometry",
    "RecordHead",
    "SegmentHead",
    "blocks_of",
    "pack_record",
]

BLOCK = 4096  # the page and the sector of everything in use
LEAST_SIZE = 64 << 10
DEFAULT_SIZE = 64 << 20
MOST_SIZE = 1 << 30  # a reader looks at every block
_MAGIC = b"\x89FBX\r\n\x1a\n"
_VERSION = 1
_MOST_SEGMENTS = 16
_MOST_SEGMENT = MOST_SIZE // _MOST_SEGMENTS
_HEAD = struct.Struct("<8sIIQIIQQ36s")  # magic, checksum, version, segment size, segments, number, serial, run, boot id
_RECORD_MAGIC = b"\x89FBR"
_RECORD = struct.Struct("<4sIIIB3xQQQQ")  # magic, checksum, length, dropped, kind, serial, sequence, monotonic, unix
HEAD_BYTES = _RECORD.size  # before each frame


@dataclass(frozen=True)
class Geometry:
    """How a box is divided: ``segments`` of ``segment_bytes`` each, a multiple of the block."""

    segment_bytes: int
    segments: int

    @classmethod
    def of_size(cls, size_bytes: int) -> Geometry:
        """Return the division of a box of at most ``size_bytes``. Raises OutputError when that is out of range."""
        if not LEAST_SIZE <= size_bytes <= MOST_SIZE:
            raise OutputError(
                f"a black box of {size_bytes} bytes; it may have {LEAST_SIZE >> 10} KiB to {MOST_SIZE >> 30} GiB.",
                hint="choose another --blackbox-size",
            )
        # The oldest segment is lost at once when its turn comes: one sixteenth of what is kept.
        segments = _MOST_SEGMENTS if size_bytes >= 1 << 20 else 4
        return cls(size_bytes // segments // BLOCK * BLOCK, segments)

    def places(self, hand: int, hands: int) -> range:
        """Return the segments of one of so many hands. The second, which helps out, has an eighth of the box."""
        share = max(2, self.segments // 8) if hands > 1 else 0
        return range(self.segments - share, self.segments) if hand else range(self.segments - share)

    @property
    def size_bytes(self) -> int:
        """The whole box."""
        return self.segment_bytes * self.segments


@dataclass(frozen=True)
class SegmentHead:
    """Whose segment it is and when its turn was.

    ``number``: its place in the box. ``serial`` rises with every turn; 0: no turn yet; odd ones are the second hand's.
    ``run``: which recorder wrote it, a random number.
    """

    geometry: Geometry
    number: int
    serial: int
    run: int
    boot_id: str

    def pack(self) -> bytes:
        """Return its block."""
        fields = (self.geometry.segment_bytes, self.geometry.segments, self.number, self.serial, self.run)
        rest = _HEAD.pack(_MAGIC, 0, _VERSION, *fields, self.boot_id.encode("ascii", "replace")[:36])[12:]
        return (_MAGIC + struct.pack("<I", zlib.crc32(rest)) + rest).ljust(BLOCK, b"\0")

    @classmethod
    def unpack(cls, block: bytes) -> SegmentHead | None:
        """Return the head in ``block``; None when there is none, or a damaged one."""
        if len(block) < _HEAD.size:
            return None
        magic, checksum, version, size, segments, number, serial, run, boot = _HEAD.unpack_from(block)
        if magic != _MAGIC or checksum != zlib.crc32(block[12 : _HEAD.size]) or version != _VERSION:
            return None
        if not 2 <= segments <= _MOST_SEGMENTS or number >= segments:
            return None
        if size % BLOCK or not 2 * BLOCK <= size <= _MOST_SEGMENT:
            return None
        return cls(Geometry(size, segments), number, serial, run, boot.rstrip(b"\0").decode("ascii", "replace"))


@dataclass(frozen=True)
class Note:
    """What goes along with a frame.

    ``kind``: the frame's. ``sequence`` rises by one with each record of a run; a segment's header has that of the
    record after it. ``dropped``: how many the recorder could not hand over so far. ``monotonic_ns``, ``unix_ns``: when
    it was handed over, by both clocks.
    """

    kind: int
    sequence: int = 0
    dropped: int = 0
    monotonic_ns: int = 0
    unix_ns: int = 0


@dataclass(frozen=True)
class RecordHead(Note):
    """What is known of a frame without reading it."""

    serial: int = 0
    length: int = 0
    checksum: int = 0

    @classmethod
    def unpack(cls, data: memoryview, serial: int) -> RecordHead | None:
        """Return the head at the start of ``data``; None when no record of the segment's ``serial`` begins there."""
        if len(data) < _RECORD.size or data[:4] != _RECORD_MAGIC:
            return None
        _, checksum, length, dropped, kind, own, sequence, monotonic, unix = _RECORD.unpack_from(data)
        if own != serial:
            return None
        return cls(kind, sequence, dropped, monotonic, unix, own, length, checksum)

    @property
    def blocks(self) -> int:
        """How many blocks the record takes."""
        return blocks_of(self.length)

    @staticmethod
    def frame_of(data: memoryview, head: RecordHead) -> bytes | None:
        """Return the frame of the record that ``data`` begins with; None when it is torn or damaged."""
        end = _RECORD.size + head.length
        if len(data) < end or zlib.crc32(data[8:end]) != head.checksum:
            return None
        return bytes(data[_RECORD.size : end])


def blocks_of(length: int) -> int:
    """Return how many blocks a record with a frame of ``length`` bytes takes."""
    return -(-(_RECORD.size + length) // BLOCK)


def pack_record(note: Note, serial: int, frame: bytes | memoryview) -> list[bytes | memoryview]:
    """Return the record in pieces that fill whole blocks."""
    rest = _RECORD.pack(
        _RECORD_MAGIC, 0, len(frame), note.dropped & 0xFFFFFFFF, note.kind, serial, note.sequence,
        note.monotonic_ns, note.unix_ns,
    )[8:]  # fmt: skip
    checksum = zlib.crc32(frame, zlib.crc32(rest))
    fill = blocks_of(len(frame)) * BLOCK - _RECORD.size - len(frame)
    return [_RECORD_MAGIC + struct.pack("<I", checksum) + rest, frame, bytes(fill)]
