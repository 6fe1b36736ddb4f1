"""Read structured rows that may come from another version: a missing column is a default, never an error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["COMM", "has", "numbers", "key_bytes", "plain", "record", "text", "texts"]

#: A thread's name, as long as the kernel keeps one. Source: TASK_COMM_LEN in include/linux/sched.h.
COMM = "S16"


def has(rows: np.ndarray, name: str) -> bool:
    """Return whether ``rows`` have the column ``name``."""
    return rows.dtype.names is not None and name in rows.dtype.names


def numbers(rows: np.ndarray, name: str, default: float = 0) -> np.ndarray:
    """Return a numeric column, shape ``(n,)``; ``default`` in every row when there is no such column."""
    return np.asarray(rows[name]) if has(rows, name) else np.full(rows.shape[0], default)


def text(value: Any) -> str:
    """Return a name as text. Invalid bytes survive as surrogates: reports escape them, nothing here prints."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("utf-8", "surrogateescape")
    return str(value)


def texts(rows: np.ndarray, name: str) -> list[str]:
    """Return a column of names as a list of text; empty strings when there is no such column."""
    return [text(value) for value in rows[name]] if has(rows, name) else [""] * rows.shape[0]


def record(row: Any) -> dict[str, Any]:
    """Return one row as plain Python values: names as text, numbers as int or float, histograms left out."""
    values = {name: row[name] for name in row.dtype.names if not row.dtype[name].shape}
    return {name: plain(value) for name, value in values.items()}


def plain(value: Any) -> Any:
    """Return a numpy scalar as the Python value it stands for; names as text."""
    if isinstance(value, bytes):
        return text(value)
    return value.item() if isinstance(value, np.generic) else value


def key_bytes(rows: np.ndarray, names: Iterable[str]) -> bytes | None:
    """Return bytes that are equal for equal key columns; None when a column holds objects, which have no such bytes."""
    columns = [rows[name] for name in names if has(rows, name)]
    if any(column.dtype.hasobject for column in columns):
        return None
    return b"".join(np.ascontiguousarray(column).tobytes() for column in columns)
