"""A frame's payload: a small msgpack map, then the bytes of the columns that it describes.

The two are kept apart so that the part that becomes Python objects, many times its size in memory, has a small cap
of its own, and the columns are never copied on the way to numpy.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import msgpack

from tracer.errors import RecordingError
from tracer.recording.packing import pack

__all__ = ["MAX_STRUCTURE", "PLACE_OF_MAP", "pack_payload", "structure_size", "unpack_payload"]

MAX_STRUCTURE = 1 << 20  # of the msgpack map: as Python objects it takes at most about 60 times its size
_MAX_CONTAINERS = 1 << 15
_MAX_ITEMS = (1 << 12) - 1  # msgpack reserves a list's declared length before it has read one item of it
_LENGTH = struct.Struct("<I")
PLACE_OF_MAP = _LENGTH.size


def pack_payload(structure: Mapping[str, Any] | bytes, columns: bytes = b"", *, checked: bool = False) -> bytes:
    """Return a payload of a map, which may be packed already, and columns.

    ``checked``: the caller knows that no single container or name in the map is too large. Raises ValueError or
    TypeError when it is one that a reader would refuse.
    """
    packed = structure if isinstance(structure, bytes) else pack(structure)
    if len(packed) > MAX_STRUCTURE:
        raise ValueError(f"its description takes {len(packed)} bytes, the most is {MAX_STRUCTURE}")
    if not checked or len(packed) > _MAX_CONTAINERS:
        try:
            _unpack(packed)
        except RecordingError as error:
            raise ValueError(error.message) from None
    return _LENGTH.pack(len(packed)) + packed + columns


def unpack_payload(payload: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return a payload's map and the columns' bytes after it. Raises RecordingError."""
    if len(payload) < _LENGTH.size:
        raise RecordingError("a frame's payload is too short.")
    (length,) = _LENGTH.unpack_from(payload)
    view = memoryview(payload)[_LENGTH.size :]
    if length > min(MAX_STRUCTURE, len(view)):
        raise RecordingError("a frame's description is longer than it may be.")
    structure = _unpack(view[:length])
    if not isinstance(structure, dict):
        raise RecordingError("a frame's description is not a map.")
    return structure, view[length:]


def structure_size(payload: bytes) -> int:
    """Return how long the map of a payload is that ``unpack_payload`` has read."""
    return int(_LENGTH.unpack_from(payload)[0])


def _unpack(data: bytes | memoryview) -> Any:
    containers = 0

    # msgpack caps each container but not how many there are: 1 MiB of empty maps would be 64 MiB of dicts.
    # Each takes a byte and more, so that a short description can't have too many.
    def counted(container: Any) -> Any:
        nonlocal containers
        containers += 1
        if containers > _MAX_CONTAINERS:
            raise RecordingError("a frame's description has too many parts.")
        return container

    hook = counted if len(data) > _MAX_CONTAINERS else None
    try:
        return msgpack.unpackb(
            data,
            raw=False,
            strict_map_key=True,
            object_hook=hook,
            list_hook=hook,
            max_str_len=len(data),
            max_bin_len=len(data),
            max_array_len=_MAX_ITEMS,
            max_map_len=_MAX_ITEMS,
            max_ext_len=0,
        )
    except RecordingError:
        raise
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError, OverflowError):
        raise RecordingError("a frame's description is not valid msgpack within the limits.") from None
