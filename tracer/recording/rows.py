"""One window to a description and its columns' bytes, and back: the checks are the same in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tracer.errors import RecordingError
from tracer.recording.columns import decode_column, encode_column, encoded_size
from tracer.recording.description import MAX_ROWS, check_description
from tracer.recording.dtypes import MAX_LAYOUTS, Path, leaves
from tracer.recording.packing import DENSE, pack_window
from tracer.window import Window

__all__ = ["decode_window", "encode_window", "fill_window", "pass_window", "skip_window"]

_KEYS = ("probe", "table", "start_ns", "end_ns", "losses", "layout", "rows", "columns")


def encode_window(window: Window, layout: int) -> tuple[bytes, list[bytes]]:
    """Return a window's packed description and its columns' bytes. Raises ValueError for what a reader would refuse."""
    if window.rows.ndim != 1:
        raise ValueError(f"{window.probe}.{window.table}: rows have shape {window.rows.shape}, not (n,)")
    forms, data = _encode(window.rows)
    return pack_window(window, layout, forms), data


def decode_window(
    description: object, layouts: list[np.dtype], data: memoryview, room: int
) -> tuple[Window, memoryview]:
    """Return the window and the bytes after its columns; its rows may take ``room`` bytes. Raises RecordingError."""
    return fill_window(_described(description, layouts), layouts, data, room)


def fill_window(
    found: dict[str, Any], layouts: list[np.dtype], data: memoryview, room: int
) -> tuple[Window, memoryview]:
    """Return what ``decode_window`` does, of a description that ``skip_window`` returned. Raises RecordingError."""
    dtype = layouts[found["layout"]]
    if dtype.itemsize * found["rows"] > room:
        raise RecordingError("an interval has more rows than it may.")
    rows = np.zeros(found["rows"], dtype)
    data = _fill(rows, found.get("columns"), data)
    window = Window(found["probe"], found["table"], found["start_ns"], found["end_ns"], rows, found["losses"])
    return window, data


def skip_window(
    description: object, layouts: list[np.dtype], data: memoryview
) -> tuple[dict[str, Any], memoryview, memoryview]:
    """Return the description as ``encode_window`` makes it, its columns' bytes, and those after. Raises RecordingError.

    What the bytes hold is not looked at.
    """
    found = _described(description, layouts)
    dtype, forms = layouts[found["layout"]], _forms(found.get("columns"), layouts[found["layout"]])
    rows, size = found["rows"], dtype.itemsize * found["rows"]
    if not _dense(forms):
        size = sum(encoded_size(form, n * rows, each) for (n, each), form in zip(_counts(dtype), forms, strict=True))
    columns = _first(data, size)
    return {key: found[key] for key in _KEYS}, columns, data[size:]


def pass_window(description: object, layouts: list[np.dtype], data: memoryview) -> memoryview:
    """Return the bytes after a window's columns, having looked at no more than that takes. Raises RecordingError."""
    if not isinstance(description, dict):
        raise RecordingError("a window is not a map.")
    rows, layout = description.get("rows"), description.get("layout")
    if type(rows) is not int or type(layout) is not int or not (0 <= rows <= MAX_ROWS and 0 <= layout < len(layouts)):
        raise RecordingError("a window's rows or layout are out of range.")
    if not rows:
        return data
    dtype = layouts[layout]
    forms, size = _forms(description.get("columns"), dtype), dtype.itemsize * rows
    if not _dense(forms):
        size = sum(encoded_size(form, n * rows, each) for (n, each), form in zip(_counts(dtype), forms, strict=True))
    _first(data, size)
    return data[size:]


def _described(description: object, layouts: list[np.dtype]) -> dict[str, Any]:
    if not isinstance(description, dict):
        raise RecordingError("a window is not a map.")
    check_description(description)
    if description["layout"] >= len(layouts):
        raise RecordingError("a window's columns are not described.")
    return description


def _forms(forms: object, dtype: np.dtype) -> list[Any]:
    if not isinstance(forms, list) or len(forms) != _columns(dtype):
        raise RecordingError("a window has another number of columns than described.")
    return forms


def _encode(rows: np.ndarray) -> tuple[list[list[int]], list[bytes]]:
    """Return the form of every column, and the bytes of all columns."""
    if not len(rows):
        return [DENSE] * _columns(rows.dtype), []
    forms: list[list[int]] = []
    data: list[bytes] = []
    octets = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize)
    for part in _parts(rows.dtype):
        if isinstance(part, _Numbers):
            forms += [DENSE] * part.columns
            data.append(octets[:, part.start : part.end].T.tobytes())
        else:
            form, column = encode_column(_at(rows, part))
            forms.append(form)
            data.append(column)
    return forms, data


@lru_cache(MAX_LAYOUTS)
def _columns(dtype: np.dtype) -> int:
    return sum(1 for _ in leaves(dtype))


def _dense(forms: list[Any]) -> bool:
    return forms.count([]) == len(forms)


@lru_cache(MAX_LAYOUTS)
def _counts(dtype: np.dtype) -> list[tuple[int, int]]:
    """Return of each column how many values a row has of it, and how many bytes each takes."""
    row = np.zeros(1, dtype)
    return [(_at(row, path).size, leaf.itemsize) for path, leaf in leaves(dtype)]


@dataclass
class _Numbers:
    """Columns of one number per row that lie side by side: their byte planes do so, too, and are made at once."""

    start: int
    end: int
    paths: list[Path]

    @property
    def columns(self) -> int:
        return len(self.paths)


@lru_cache(MAX_LAYOUTS)
def _parts(dtype: np.dtype) -> list[_Numbers | Path]:
    fields: Mapping[str, Any] = dtype.fields or {}
    parts: list[_Numbers | Path] = []
    for path, leaf in leaves(dtype):
        field, start, *_ = fields[path[0]]
        # A bool is more than its bytes when it is read.
        if field.subdtype or field.names or leaf.kind in "Sb" or leaf.str[0] == ">":
            parts.append(path)
            continue
        last = parts[-1] if parts else None
        if isinstance(last, _Numbers) and last.end == start:
            last.end = start + leaf.itemsize
            last.paths.append(path)
        else:
            parts.append(_Numbers(start, start + leaf.itemsize, [path]))
    return parts


def _fill(rows: np.ndarray, forms: object, data: memoryview) -> memoryview:
    known, place = _forms(forms, rows.dtype), 0
    if not len(rows) and _dense(known):
        return data
    for part in _parts(rows.dtype):
        count = part.columns if isinstance(part, _Numbers) else 1
        mine, place = known[place : place + count], place + count
        if isinstance(part, _Numbers) and _dense(mine):
            data = _fill_numbers(rows, part, data)
            continue
        for path, form in zip(part.paths if isinstance(part, _Numbers) else [part], mine, strict=True):
            target = _at(rows, path)
            size = encoded_size(form, target.size, target.itemsize)
            decode_column(form, _first(data, size), target)
            data = data[size:]
    return data


def _fill_numbers(rows: np.ndarray, part: _Numbers, data: memoryview) -> memoryview:
    """Fill dense columns that lie side by side, at once."""
    if not len(rows):
        return data
    width = part.end - part.start
    planes = np.frombuffer(_first(data, width * len(rows)), np.uint8).reshape(width, len(rows))
    rows.view(np.uint8).reshape(len(rows), rows.dtype.itemsize)[:, part.start : part.end] = planes.T
    return data[planes.size :]


def _first(data: memoryview, size: int) -> memoryview:
    if size > len(data):
        raise RecordingError("a column's bytes are missing.")
    return data[:size]


def _at(rows: np.ndarray, path: Path) -> np.ndarray:
    for name in path:
        rows = rows[name]
    return rows
