"""Which rows of a map have counted between two snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.collect.snapshots import Snapshots

__all__ = ["Counts"]

#: At once: what comparing them takes stays in the CPU's cache.
_COMPARED_BYTES = 64 << 10
_NONE: npt.NDArray[np.intp] = np.zeros(0, np.intp)


class Counts:
    """Some members of a map's rows, given by their paths, compared as the words of memory that they are.

    Members that lie side by side are one comparison, and what else changes in a row (a heartbeat) is none.
    """

    def __init__(self, snapshots: Snapshots, paths: Iterable[str]) -> None:
        self._snapshots = snapshots
        dtype = snapshots.after.dtype
        ranges = _joined(_range(dtype, path) for path in paths)
        width = gcd(8, dtype.itemsize, *(offset for range_ in ranges for offset in range_))
        self._ranges = [slice(start // width, end // width) for start, end in ranges]
        words = {
            id(rows): rows.view(f"u{width}").reshape(len(rows), -1) for rows in (snapshots.before, snapshots.after)
        }
        self._words: dict[int, npt.NDArray[Any]] = words
        self._step = max(1, _COMPARED_BYTES // sum(end - start for start, end in ranges))

    def moved(self) -> npt.NDArray[np.intp]:
        """Return the rows in which any of the members differs between the two copies."""
        snapshots = self._snapshots
        now, was = self._words[id(snapshots.after)], self._words[id(snapshots.before)]
        rows, step = snapshots.rows, self._step
        parts = []
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            # A slice where it can be: what it selects is not copied.
            places = slice(start, start + step) if snapshots.whole else part
            parts.append(part[self._difference(now, was, places).nonzero()])
        return parts[0] if len(parts) == 1 else np.concatenate([_NONE, *parts])

    def _difference(self, now: npt.NDArray[Any], was: npt.NDArray[Any], rows: Any) -> npt.NDArray[Any]:
        """Return, of some rows, numbers that are 0 where the two copies are equal."""
        first, *others = [np.bitwise_or.reduce(now[rows, part] ^ was[rows, part], axis=1) for part in self._ranges]
        for other in others:
            first |= other
        difference: npt.NDArray[Any] = first
        return difference


def _range(dtype: np.dtype, path: str) -> tuple[int, int]:
    """Return where a member begins and ends, in bytes from the row's start."""
    start = 0
    for name in path.split("."):
        assert dtype.fields is not None
        dtype, offset, *_ = dtype.fields[name]
        start += offset
    return start, start + dtype.itemsize


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined
