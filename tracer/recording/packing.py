"""A window's description as msgpack, put together from parts that are the same in every interval, each packed once."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgpack

from tracer.errors import RecordingError
from tracer.recording.description import check_description
from tracer.window import Window

__all__ = ["DENSE", "join_windows", "pack", "pack_window"]

_KEPT, _KEPT_TIMES = 256, 16  # the windows of an interval share a few
_ANY_TIMES = {"start_ns": 0, "end_ns": 0}
_ANY_NAMES = {"probe": "", "table": "", **_ANY_TIMES}
_FIX_MAP, _FIX_LIST, _FEW = 0x80, 0x90, 15
_LIST_16 = struct.Struct(">BH")
#: The form of a dense column.
DENSE: list[int] = []
_SEQUENCE, _WINDOWS = b"\xa8sequence", b"\xa7windows"


def pack(value: object) -> bytes:
    """Return ``value`` as msgpack. Raises ValueError, TypeError or OverflowError for what msgpack can't hold."""
    # A lone surrogate (a file name that isn't UTF-8) becomes "\\udcff": readable, and no terminal chokes on it.
    packed: bytes = msgpack.packb(value, unicode_errors="backslashreplace")
    return packed


def pack_window(window: Window, layout: int, forms: Sequence[list[int]]) -> bytes:
    """Return a window's description, with its columns' ``forms``. Raises ValueError for what a reader would refuse."""
    try:
        name = _name(window.probe, window.table)
        times = _times(int(window.start_ns), int(window.end_ns))
        losses = _losses(tuple(window.losses.items()), layout, len(window.rows))
    except RecordingError as error:
        raise ValueError(f"{window.probe}.{window.table}: {error.message}") from None
    # What is sparse is another number of values every time.
    columns = _dense(len(forms)) if forms.count(DENSE) == len(forms) else pack(forms)
    return name + times + losses + columns


def join_windows(sequence: int, windows: Sequence[bytes], more: Mapping[str, Any]) -> bytes:
    """Return an interval's map: ``windows`` as ``pack_window`` has made them, and ``more``, of a few keys."""
    count, keys = len(windows), 2 + len(more)
    assert keys <= _FEW, "a map of few keys has its length in its first byte"
    number = bytes((_FIX_LIST | count,)) if count <= _FEW else _LIST_16.pack(0xDC, count)
    head = bytes((_FIX_MAP | keys,)) + _SEQUENCE + pack(sequence) + _WINDOWS + number
    return b"".join((head, *windows, pack(more)[1:]))


@lru_cache(_KEPT)
def _name(probe: str, table: str) -> bytes:
    check_description({"probe": probe, "table": table, **_ANY_TIMES, **_rest({}, 0, 0)})
    return bytes((_FIX_MAP | 8,)) + b"".join(map(pack, ("probe", probe, "table", table, "start_ns")))


@lru_cache(_KEPT_TIMES)
def _times(start_ns: int, end_ns: int) -> bytes:
    check_description({**_ANY_NAMES, "start_ns": start_ns, "end_ns": end_ns, **_rest({}, 0, 0)})
    return pack(start_ns) + pack("end_ns") + pack(end_ns)


@lru_cache(_KEPT)
def _losses(losses: tuple[tuple[str, int], ...], layout: int, rows: int) -> bytes:
    rest = _rest({reason: int(number) for reason, number in losses}, layout, rows)
    check_description({**_ANY_NAMES, **rest})
    return pack(rest)[1:] + pack("columns")


def _rest(losses: dict[str, int], layout: int, rows: int) -> dict[str, Any]:
    return {"losses": losses, "layout": layout, "rows": rows}


@lru_cache(_KEPT)
def _dense(columns: int) -> bytes:
    return pack([DENSE] * columns)
