"""Describe a window's numpy dtype in plain lists, and accept only the harmless ones back.

A description is a list of fields ``[name, type, shape]``; a type is ``"u4"``, ``"i8"``, ``"f8"``, ``"b1"``, ``"S16"``
or, for a nested struct, again a list of fields. Padding is not described: what is read back is packed, little-endian.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any

import msgpack
import numpy as np

from tracer.errors import RecordingError

__all__ = ["MAX_FIELDS", "MAX_LAYOUTS", "Path", "describe", "leaves", "parse", "parse_all"]

MAX_FIELDS = 256
MAX_LAYOUTS = 128  # at once; with the longest names a decoder keeps 30 MB of them
_MAX_DEPTH = 4
_MAX_DIMENSIONS = 4
_MAX_NAME = 128
_MAX_ROW = 1 << 20
_MAX_KEPT, _MAX_KEPT_BYTES = 32, 64 << 10
_SCALAR = re.compile(r"u[1248]|i[1248]|f[248]|b1|S(?:0|[1-9][0-9]{0,4})", re.ASCII)

Path = tuple[str, ...]

# What was described lately, as msgpack, and its dtypes; for the same reason as ``describe`` has it.
_kept: dict[bytes, list[np.dtype]] = {}


# A black box describes the same tables in each of its frames, which takes longer than all their rows.
@lru_cache(MAX_LAYOUTS)
def describe(dtype: np.dtype) -> list[list[Any]]:
    """Return the description of a structured ``dtype``. Raises ValueError when a reader would refuse it."""
    description = _describe(dtype)
    try:
        parse(description)
    except RecordingError as error:
        raise ValueError(error.message) from None
    return description


def parse(description: object) -> np.dtype:
    """Return the packed little-endian dtype of a description. Raises RecordingError when it is not a safe one."""
    dtype, fields = _parse(description, 1)
    if fields > MAX_FIELDS:
        raise RecordingError(f"a table has {fields} columns; the most is {MAX_FIELDS}.")
    return dtype


def parse_all(descriptions: list[Any]) -> list[np.dtype]:
    """Return the dtypes of descriptions, as ``parse`` does. Raises RecordingError."""
    try:
        key = msgpack.packb(descriptions, unicode_errors="surrogatepass")
    except (ValueError, TypeError, OverflowError):
        key = b""
    if key not in _kept:
        found = [parse(description) for description in descriptions]
        if not 0 < len(key) <= _MAX_KEPT_BYTES:
            return found
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        _kept[key] = found
    return _kept[key]


def leaves(dtype: np.dtype) -> Iterator[tuple[Path, np.dtype]]:
    """Yield the path and scalar dtype of every column, in the order of the fields, depth first."""
    for name in dtype.names or ():
        base = dtype[name].base
        if base.names is None:
            yield (name,), base
        else:
            yield from (((name, *path), leaf) for path, leaf in leaves(base))


def _describe(dtype: np.dtype) -> list[list[Any]]:
    if dtype.names is None:
        raise ValueError(f"rows must have fields, not dtype {dtype}")
    described = []
    for name in dtype.names:
        field = dtype[name]
        base = field.base
        kind: Any = base.str[1:] if base.names is None else _describe(base)
        described.append([name, kind, list(field.shape)])
    return described


def _parse(description: object, depth: int) -> tuple[np.dtype, int]:
    if not isinstance(description, list) or len(description) > MAX_FIELDS or depth > _MAX_DEPTH:
        raise RecordingError("a table's columns are not described as they should be.")
    fields: list[tuple[Any, ...]] = []
    size = total = 0
    for field in description:
        if not isinstance(field, list) or len(field) != 3:
            raise RecordingError("a column is not described as name, type, shape.")
        name, kind, shape = field
        _check_name(name)
        if isinstance(kind, list):
            base, inner = _parse(kind, depth + 1)
        else:
            base, inner = _scalar(kind), 1
        _check_shape(shape, base.itemsize)
        # numpy takes S0 alone, but not S0 with the shape ().
        fields.append((name, base, tuple(shape)) if shape else (name, base))
        size += base.itemsize * prod(shape)
        total += max(inner, 1)
    if len({field[0] for field in fields}) < len(fields):
        raise RecordingError("two columns of a table have the same name.")
    if size > _MAX_ROW:
        raise RecordingError(f"a row is larger than {_MAX_ROW} bytes.")
    try:
        return np.dtype(fields), total
    except (ValueError, TypeError):
        # numpy has rules of its own, such as no arrays of S0.
        raise RecordingError("a table's columns are none that numpy can have.") from None


def _scalar(kind: object) -> np.dtype:
    # The one gate: what matches has no pointers in it, so "O" can't get through.
    if not isinstance(kind, str) or not _SCALAR.fullmatch(kind):
        raise RecordingError("a column's type is not one that recordings have.")
    return np.dtype(f"<{kind}")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
        raise RecordingError("a column's name is empty, too long or not text.")


def _check_shape(shape: object, itemsize: int) -> None:
    if not isinstance(shape, list) or len(shape) > _MAX_DIMENSIONS:
        raise RecordingError("a column's shape is not a short list.")
    if not all(type(size) is int and 0 <= size <= _MAX_ROW for size in shape):
        raise RecordingError("a column's shape has a size out of range.")
    # Nothing is no way around the limit: arrays of it could have any number of dimensions and elements.
    if shape and (not itemsize or itemsize * prod(max(1, size) for size in shape) > _MAX_ROW):
        raise RecordingError(f"a column is an array of nothing, or larger than {_MAX_ROW} bytes.")
