"""As much of protobuf's wire format as pprof's messages take. Source: https://protobuf.dev/programming-guides/encoding/."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["integer", "message", "packed", "text"]

_VARINT, _BYTES = 0, 2


def integer(number: int, value: int) -> bytes:
    """Return field ``number`` with an int64, uint64 or bool."""
    return _varint(number << 3 | _VARINT) + _varint(value & (1 << 64) - 1)


def message(number: int, content: bytes) -> bytes:
    """Return field ``number`` with bytes, or with a message's bytes."""
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def packed(number: int, values: Iterable[int]) -> bytes:
    """Return the repeated field ``number`` of integers."""
    return message(number, b"".join(_varint(value & (1 << 64) - 1) for value in values))


def text(number: int, value: str) -> bytes:
    """Return field ``number`` with text."""
    return message(number, value.encode())


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
