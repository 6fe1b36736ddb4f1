"""One frame: a checked head, then a compressed payload; and the preamble that opens a file or connection of them.

Frames know nothing of files: the same bytes go to a recording and over a connection.
Every size is capped before memory is spent on it, because the bytes may come from anyone.
"""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tracer.errors import RecordingError
from tracer.recording.payload import pack_payload

__all__ = [
    "HEAD_BYTES",
    "MAX_BODY",
    "PREAMBLE",
    "WHOLE",
    "Frame",
    "FrameCut",
    "Kind",
    "check_preamble",
    "pack_frame",
    "read_frame",
    "read_head",
]

MAX_BODY = 16 << 20  # also the cap of the payload it inflates to
WHOLE = MAX_BODY + 1
_READ_AT_ONCE = 1 << 20

_MAGIC = b"\x89FSK\r\n\x1a\n"  # as PNG's: a transfer in text mode spoils it visibly
_MAJOR, _MINOR = 1, 0
PREAMBLE = _MAGIC + bytes((_MAJOR, _MINOR)) + b"L\x00"

_HEAD = struct.Struct("<IIBBH")  # checksum, length, kind, compression, check
HEAD_BYTES = _HEAD.size
_LENGTH = struct.Struct("<I")
_STORED, _ZLIB = 0, 1


class Kind(enum.IntEnum):
    """What a frame holds. A reader skips kinds it doesn't know: a later minor version may add some.

    ALERT is an alert's map (``tracer.alerts.record``), in a black box or a connection. HELLO and BEAT are of
    connections only: docs/alerts-delivery.md.
    """

    HEADER = 1
    WINDOWS = 2
    END = 3
    ALERT = 4
    HELLO = 5
    BEAT = 6


@dataclass(frozen=True)
class Frame:
    """A frame whose checksum is right: its ``kind`` as a number, its inflated ``payload``, its ``size`` as stored."""

    kind: int
    payload: bytes
    size: int


class FrameCut(RecordingError):
    """The bytes end inside a frame; ``left`` of its bytes are there."""

    def __init__(self, left: int) -> None:
        super().__init__(f"cut off inside a frame, {left} bytes of it are there.")
        self.left = left


def check_preamble(preamble: bytes) -> None:
    """Raise RecordingError unless ``preamble`` opens a recording that this version reads."""
    if preamble[: len(_MAGIC)] != _MAGIC[: len(preamble)]:
        hint = "recordings are written by: foreshock record; most commands read black boxes, too"
        raise RecordingError("not a foreshock recording.", hint=hint)
    if len(preamble) < len(PREAMBLE):
        what = "cut off before its header" if preamble else "empty"
        raise RecordingError(f"the recording is {what}.", hint="nothing of it can be read; record again")
    major, minor, order = preamble[8], preamble[9], preamble[10:11]
    if major != _MAJOR:
        raise RecordingError(
            f"recording format {major}.{minor}; this foreshock reads {_MAJOR}.x.",
            hint="read it with the foreshock version that wrote it, or a later one",
        )
    if order != b"L":
        raise RecordingError(
            "a big-endian recording; this foreshock reads little-endian ones.",
            hint="read it on a machine of the node's own byte order",
        )


def pack_frame(
    kind: int, structure: Mapping[str, Any] | bytes, columns: bytes = b"", *, checked: bool = False
) -> bytes:
    """Return a whole frame; for ``structure`` and ``checked`` see ``pack_payload``.

    Raises ValueError or TypeError when it is one that a reader would refuse.
    """
    payload = pack_payload(structure, columns, checked=checked)
    if len(payload) > MAX_BODY:
        raise ValueError(f"it takes {len(payload)} bytes, the most is {MAX_BODY}")
    body, compression = _deflate(payload), _ZLIB
    if len(body) >= len(payload):
        body, compression = payload, _STORED
    head = _HEAD.pack(0, len(body), kind, compression, _check(len(body), kind, compression))
    checksum = zlib.crc32(body, zlib.crc32(head[4:]))
    return _LENGTH.pack(checksum) + head[4:] + body


def read_frame(read: Callable[[int], bytes], *, first: int = WHOLE) -> Frame | None:
    """Read the next frame through ``read(n)``, which returns at most ``n`` bytes and none only at the end.

    ``first``: so much of its payload is enough; inflating is most of the work.
    None at the end of the bytes. Raises FrameCut when they end inside the frame, RecordingError when it is damaged.
    """
    head = _read(read, HEAD_BYTES)
    if not head:
        return None
    if len(head) < HEAD_BYTES:
        raise FrameCut(len(head))
    length, kind = read_head(head)
    body = _read(read, length)
    if len(body) < length:
        raise FrameCut(len(head) + len(body))
    checksum, _, _, compression, _ = _HEAD.unpack(head)
    if checksum != zlib.crc32(body, zlib.crc32(head[4:])):
        raise RecordingError("a frame's checksum is wrong.")
    return Frame(kind, _inflate(body, compression, first), len(head) + length)


def read_head(head: bytes) -> tuple[int, int]:
    """Return how many bytes follow a frame's ``HEAD_BYTES``, and its kind. Raises RecordingError when it is damaged."""
    _, length, kind, compression, check = _HEAD.unpack(head)
    # The head has a check of its own, else a damaged length would look like a recording cut off much later.
    if check != _check(length, kind, compression):
        raise RecordingError("a frame's head is damaged.")
    if length > MAX_BODY:
        raise RecordingError(f"a frame of {length} bytes; the most is {MAX_BODY}.")
    return int(length), int(kind)


def _check(length: int, kind: int, compression: int) -> int:
    return zlib.crc32(struct.pack("<IBB", length, kind, compression)) & 0xFFFF


def _read(read: Callable[[int], bytes], size: int) -> bytes:
    # In pieces: a file reserves what it is asked for, and the length may promise 16 MiB that aren't there.
    pieces: list[bytes] = []
    while size:
        piece = read(min(size, _READ_AT_ONCE))
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _deflate(payload: bytes) -> bytes:
    # Level 1: higher ones take up to six times as long and save 7 %. Most intervals are small: clearing the tables
    # of the usual window, and having memory for it, would take longer than compressing one.
    window, memory = (13, 6) if len(payload) <= 1 << 14 else (15, 8)
    deflater = zlib.compressobj(1, zlib.DEFLATED, window, memory)
    return deflater.compress(payload) + deflater.flush()


def _inflate(body: bytes, compression: int, first: int) -> bytes:
    if compression == _STORED:
        return body[:first]
    if compression != _ZLIB:
        raise RecordingError(f"a frame is compressed in a way ({compression}) that this foreshock doesn't know.")
    inflater = zlib.decompressobj()
    try:
        payload = inflater.decompress(body, first)
    except zlib.error:
        raise RecordingError("a frame can't be decompressed.") from None
    if len(payload) == first < WHOLE:
        return payload
    if len(payload) > MAX_BODY:
        raise RecordingError(f"a frame inflates to more than {MAX_BODY} bytes.")
    if not inflater.eof or inflater.unused_data:
        raise RecordingError("a frame can't be decompressed.")
    return payload
