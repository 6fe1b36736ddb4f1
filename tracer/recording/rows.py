"""One window to a description and its columns' bytes, and back: the checks are the same in both directions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tracer.errors import RecordingError
from tracer.recording.columns import decode_column, encode_column, encoded_size
from tracer.recording.dtypes import MAX_LAYOUTS, Path, leaves
from tracer.window import Window

__all__ = ["decode_window", "encode_window"]

_MAX_ROWS = 1 << 22  # rows without a column take no bytes
_MAX_NAME = 255
_MAX_LOSSES = 256
_U64 = 1 << 64
_I63 = 1 << 63


def encode_window(window: Window, layout: int) -> tuple[dict[str, Any], list[bytes]]:
    """Return a window's description and its columns' bytes. Raises ValueError for what a reader would refuse."""
    name = f"{window.probe}.{window.table}"
    if window.rows.ndim != 1:
        raise ValueError(f"{name}: rows have shape {window.rows.shape}, not (n,)")
    paths = _paths(window.rows.dtype)
    if len(window.rows):
        columns = [encode_column(_at(window.rows, path)) for path in paths]
    else:
        columns = [([], b"")] * len(paths)
    description = {
        "probe": window.probe,
        "table": window.table,
        "start_ns": int(window.start_ns),
        "end_ns": int(window.end_ns),
        "losses": {reason: int(number) for reason, number in window.losses.items()},
        "layout": layout,
        "rows": len(window.rows),
        "columns": [form for form, _ in columns],
    }
    try:
        _check(description)
    except RecordingError as error:
        raise ValueError(f"{name}: {error.message}") from None
    return description, [data for _, data in columns]


def decode_window(
    description: object, layouts: list[np.dtype], data: memoryview, room: int
) -> tuple[Window, memoryview]:
    """Return the window and the bytes after its columns; its rows may take ``room`` bytes. Raises RecordingError."""
    if not isinstance(description, dict):
        raise RecordingError("a window is not a map.")
    _check(description)
    if description["layout"] >= len(layouts):
        raise RecordingError("a window's columns are not described.")
    dtype = layouts[description["layout"]]
    if dtype.itemsize * description["rows"] > room:
        raise RecordingError("an interval has more rows than it may.")
    rows = np.zeros(description["rows"], dtype)
    data = _fill(rows, description.get("columns"), data)
    window = Window(
        description["probe"],
        description["table"],
        description["start_ns"],
        description["end_ns"],
        rows,
        description["losses"],
    )
    return window, data


@lru_cache(MAX_LAYOUTS)
def _paths(dtype: np.dtype) -> list[Path]:
    return [path for path, _ in leaves(dtype)]


def _fill(rows: np.ndarray, forms: object, data: memoryview) -> memoryview:
    columns = list(leaves(rows.dtype))
    if not isinstance(forms, list) or len(forms) != len(columns):
        raise RecordingError("a window has another number of columns than described.")
    for (path, leaf), form in zip(columns, forms, strict=True):
        target = _at(rows, path)
        size = encoded_size(form, target.size, leaf.itemsize)
        if size > len(data):
            raise RecordingError("a column's bytes are missing.")
        decode_column(form, data[:size], target)
        data = data[size:]
    return data


def _at(rows: np.ndarray, path: Path) -> np.ndarray:
    for name in path:
        rows = rows[name]
    return rows


def _check(description: dict[str, Any]) -> None:
    for key in ("probe", "table"):
        if not isinstance(description.get(key), str) or len(description[key]) > _MAX_NAME:
            raise RecordingError(f"a window's {key} is not a name.")
    for key, limit in (("start_ns", _I63), ("end_ns", _I63), ("rows", _MAX_ROWS + 1), ("layout", MAX_LAYOUTS)):
        if type(description.get(key)) is not int or not 0 <= description[key] < limit:
            raise RecordingError(f"a window's {key} is out of range.")
    if description["start_ns"] > description["end_ns"]:
        raise RecordingError("a window ends before it starts.")
    losses = description.get("losses")
    if not isinstance(losses, dict) or len(losses) > _MAX_LOSSES:
        raise RecordingError("a window's losses are not a map.")
    for reason, number in losses.items():
        if not isinstance(reason, str) or len(reason) > _MAX_NAME or type(number) is not int or not 0 <= number < _U64:
            raise RecordingError("a window's losses are not numbers by name.")
