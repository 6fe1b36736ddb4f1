"""One window to a description and its columns' bytes, and back: the checks are the same in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    forms, data = _encode(window.rows)
    description = {
        "probe": window.probe,
        "table": window.table,
        "start_ns": int(window.start_ns),
        "end_ns": int(window.end_ns),
        "losses": {reason: int(number) for reason, number in window.losses.items()},
        "layout": layout,
        "rows": len(window.rows),
        "columns": forms,
    }
    try:
        _check(description)
    except RecordingError as error:
        raise ValueError(f"{name}: {error.message}") from None
    return description, data


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


def _encode(rows: np.ndarray) -> tuple[list[list[int]], list[bytes]]:
    """Return the form of every column, and the bytes of all columns."""
    if not len(rows):
        return [[]] * _columns(rows.dtype), []
    forms: list[list[int]] = []
    data: list[bytes] = []
    octets = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize)
    for part in _parts(rows.dtype):
        if isinstance(part, _Numbers):
            forms += [[] for _ in range(part.columns)]
            data.append(octets[:, part.start : part.end].T.tobytes())
        else:
            form, column = encode_column(_at(rows, part))
            forms.append(form)
            data.append(column)
    return forms, data


@lru_cache(MAX_LAYOUTS)
def _columns(dtype: np.dtype) -> int:
    return sum(1 for _ in leaves(dtype))


@dataclass
class _Numbers:
    """Columns of one number per row that lie side by side: their byte planes do so, too, and are made at once."""

    start: int
    end: int
    columns: int


@lru_cache(MAX_LAYOUTS)
def _parts(dtype: np.dtype) -> list[_Numbers | Path]:
    fields: Mapping[str, Any] = dtype.fields or {}
    parts: list[_Numbers | Path] = []
    for path, leaf in leaves(dtype):
        field, start, *_ = fields[path[0]]
        if field.subdtype or field.names or leaf.kind == "S" or leaf.str[0] == ">":
            parts.append(path)
            continue
        last = parts[-1] if parts else None
        if isinstance(last, _Numbers) and last.end == start:
            last.end, last.columns = start + leaf.itemsize, last.columns + 1
        else:
            parts.append(_Numbers(start, start + leaf.itemsize, 1))
    return parts


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
