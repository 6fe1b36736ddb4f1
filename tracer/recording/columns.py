"""One column of a window to bytes and back: dense, or sparse where most values are zero.

A histogram row is 298 counters of which a dozen are used. Sparse columns keep the distances between the
non-zero values and the values, each in the fewest bytes. Numbers are stored in byte planes (all lowest bytes
first), which zlib packs a fifth smaller and faster than whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.errors import RecordingError

__all__ = ["decode_column", "encode_column", "encoded_size"]

_WIDE = 8  # values per row; in narrower columns zlib does well enough alone
_WIDTHS = (1, 2, 4, 8)
_WIDTH_OF_BITS = [next(width for width in _WIDTHS if bits <= 8 * width) for bits in range(65)]
_AT_ONCE = 1 << 16  # positions are 8 bytes where the recording has 1: decoded in pieces, they stay small

_Array = npt.NDArray[Any]


def encode_column(values: _Array) -> tuple[list[int], bytes]:
    """Return a column's form, ``[]`` for dense or ``[count, distance width, value width]``, and its bytes."""
    if not values.nbytes:
        return [], b""  # S0, of which numpy's copies are S1
    column = values if values.dtype.str[0] != ">" else values.astype(values.dtype.newbyteorder("<"))
    column = np.ascontiguousarray(column)
    if column.dtype.kind in "ui" and column.size >= _WIDE * max(1, len(column)):
        sparse = _encode_sparse(column.reshape(-1))
        if sparse is not None:
            return sparse
    return [], _planes(column)


def encoded_size(form: object, size: int, itemsize: int) -> int:
    """Return how many bytes a column of ``size`` values takes in ``form``. Raises RecordingError for a bad form."""
    if form == []:
        return size * itemsize
    if not isinstance(form, list) or len(form) != 3 or not all(type(number) is int for number in form):
        raise RecordingError("a column's form is unknown.")
    count, distance_width, value_width = form
    if not 0 <= count <= size or distance_width not in _WIDTHS or value_width not in _WIDTHS or value_width > itemsize:
        raise RecordingError("a sparse column's form can't be right.")
    return int(count * (distance_width + value_width))


def decode_column(form: list[int], data: memoryview, target: _Array) -> None:
    """Fill ``target``, a view of zeros, from ``data``, whose length is ``encoded_size``. Raises RecordingError."""
    if not data:
        return
    if not form:
        target[...] = _dense(data, target.dtype, target.shape)
        return
    if target.dtype.kind not in "ui":
        raise RecordingError("a column that isn't of integers is sparse.")
    count, distance_width, value_width = form
    distances = data[: count * distance_width]
    kind = target.dtype.kind if value_width == target.itemsize else "u"
    values = _dense(data[len(distances) :], np.dtype(f"<{kind}{value_width}"), (count,))
    _fill(target, _dense(distances, np.dtype(f"<u{distance_width}"), (count,)), values)


def _encode_sparse(flat: _Array) -> tuple[list[int], bytes] | None:
    # Three times as fast as without the comparison. Of few values, as they are here, a call of numpy's takes longer
    # than what it does: hence as few as can be.
    (positions,) = (flat != 0).nonzero()
    if not positions.size:
        return [0, 1, 1], b""
    values = flat[positions]
    distances = positions.astype("<i8")
    distances[1:] -= positions[:-1]
    distances[0] += 1  # from position -1
    distance_width = _width(distances)
    # A negative value keeps its full width: only zeros are ever put back in front.
    value_width = flat.itemsize if flat.dtype.kind == "i" and values.min() < 0 else _width(values)
    if positions.size * (distance_width + value_width) >= flat.nbytes:
        return None
    # As many of the lowest bytes as are needed: a narrower number is the lower bytes of a wider one.
    data = _planes(distances, distance_width) + _planes(values, value_width)
    return [positions.size, distance_width, value_width], data


def _width(values: _Array) -> int:
    return _WIDTH_OF_BITS[int(np.maximum.reduce(values)).bit_length()]


def _fill(target: _Array, distances: _Array, values: _Array) -> None:
    last = -1
    for start in range(0, len(distances), _AT_ONCE):
        steps = distances[start : start + _AT_ONCE]
        # Checked one by one before they are added up, so that the sum of a piece can't overflow.
        if not np.logical_and.reduce(steps) or int(np.maximum.reduce(steps)) > target.size:
            raise RecordingError("a sparse column's position is wrong.")
        positions = np.add.accumulate(steps, dtype=np.int64) + last
        last = int(positions[-1])
        if last >= target.size:
            raise RecordingError("a sparse column has a position outside it.")
        target[np.unravel_index(positions, target.shape)] = values[start : start + _AT_ONCE]


def _planes(column: _Array, width: int = 0) -> bytes:
    """Return the lowest ``width`` bytes of little-endian values, all of them if it is 0, byte by byte."""
    if column.dtype.kind == "S" or column.itemsize <= 1:
        return column.tobytes()
    octets: npt.NDArray[np.uint8] = column.view(np.uint8).reshape(-1, column.itemsize)
    planes: npt.NDArray[np.uint8] = octets[:, : width or column.itemsize].T
    return planes.tobytes()


def _dense(data: memoryview, dtype: np.dtype, shape: tuple[int, ...]) -> _Array:
    whole = np.frombuffer(data, np.uint8)
    if dtype.kind == "b":
        # Any other byte than 0 and 1 would be a bool that equals neither.
        whole = (whole != 0).view(np.uint8)
    if dtype.kind != "S" and dtype.itemsize > 1:
        whole = np.ascontiguousarray(whole.reshape(dtype.itemsize, -1).T)
    values: _Array = whole.view(dtype).reshape(shape)
    return values
