"""Turn the difference of two snapshots into a table's rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.collect.snapshots import Snapshots
from tracer.histogram import SLOTS
from tracer.kernel.job import MapShape
from tracer.probe import Table

__all__ = ["table_rows", "table_dtype"]

_Index = npt.NDArray[np.intp]


def table_dtype(table: Table, shape: MapShape) -> np.dtype:
    """Return the rows' layout: axes, keys, counters, gauges and peaks, then a histogram's sum and slots."""
    keys = [(name, shape.dtype[name]) for name in table.keys]
    counters = [_column(path) for path in (*table.counters, *table.gauges, *table.peaks)]
    return _dtype(tuple(filter(None, table.by)), tuple(keys), tuple(counters), bool(table.histogram))


# The same object every time: numpy compares the fields of others one by one.
@lru_cache
def _dtype(
    axes: tuple[str, ...], keys: tuple[tuple[str, np.dtype], ...], counters: tuple[str, ...], histogram: bool
) -> np.dtype:
    fields: list[Any] = [(name, "u4") for name in axes]
    fields += [*keys, *((name, "u8") for name in counters)]
    if histogram:
        fields += [("sum", "u8"), ("slots", "u4", (SLOTS,))]
    return np.dtype(fields)


def table_rows(table: Table, shape: MapShape, snapshots: Snapshots) -> np.ndarray:
    """Return the rows in which anything counted between the snapshots, as ``Window.rows`` describes them.

    Differences are taken modulo the counter's width: a u32 cell may wrap between two snapshots. Counts go on when a
    row is given to another key, so what it counted in the interval is told under that.
    """
    chosen = _candidates(table, snapshots)
    rows = np.zeros(len(chosen), dtype=table_dtype(table, shape))
    if not len(chosen):
        return rows
    place = chosen
    for name, (_, size) in zip(reversed(table.by), reversed(shape.axes), strict=True):
        if name:
            rows[name] = place % size
        place = place // size
    for name in (*table.keys, *table.gauges, *table.peaks):
        rows[_column(name)] = snapshots.now[name][chosen]
    for path in table.counters:
        rows[_column(path)] = _difference(path, snapshots, chosen)
    if table.histogram:
        rows["sum"] = _difference(f"{table.histogram}.sum", snapshots, chosen)
        rows["slots"] = _difference(f"{table.histogram}.slots", snapshots, chosen)
    counted = np.zeros(len(rows), dtype=bool)
    for name in (*map(_column, table.counters), *(("sum",) if table.histogram else ())):
        counted |= rows[name] > 0
    if table.histogram:
        counted |= rows["slots"].any(axis=1)
    return rows if counted.all() else rows[counted]


# Below, members are taken first and rows of them then: a row of the map holds a kilobyte of other members.


def _candidates(table: Table, snapshots: Snapshots) -> _Index:
    """Pick the rows in which anything can have counted: comparing all slots would read all of a big node's memory."""
    rows = snapshots.rows
    changed = np.zeros(len(rows), dtype=bool)
    for path in table.counters:
        changed |= snapshots.was[path][rows] != snapshots.now[path][rows]
    if table.histogram:
        changed |= snapshots.moved(table.histogram)
        # Only zeros leave the sum as it is, and they have a slot of their own.
        slots = f"{table.histogram}.slots"
        changed |= snapshots.was[slots][rows, 0] != snapshots.now[slots][rows, 0]
    return rows[changed]


def _difference(path: str, snapshots: Snapshots, chosen: _Index) -> np.ndarray:
    difference: np.ndarray = snapshots.now[path][chosen]
    difference -= snapshots.was[path][chosen]
    return difference


def _column(path: str) -> str:
    return path.replace(".", "_")
