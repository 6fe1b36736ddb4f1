"""Turn the difference of two snapshots into a table's rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.collect.snapshots import Snapshots, member
from tracer.histogram import SLOTS
from tracer.kernel.job import MapShape
from tracer.probe import Table

__all__ = ["table_rows", "table_dtype"]

_Index = npt.NDArray[np.intp]


def table_dtype(table: Table, shape: MapShape) -> np.dtype:
    """Return the rows' layout: axes, keys, counters and gauges, then a histogram's sum and slots."""
    keys = [(name, shape.dtype[name]) for name in table.keys]
    counters = [_column(path) for path in (*table.counters, *table.gauges)]
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
    """Return the rows that changed between the snapshots, as ``Window.rows`` describes them.

    Differences are taken modulo the counter's width: a u32 cell may wrap between two snapshots.
    """
    chosen = _changed(table, snapshots)
    rows = np.zeros(len(chosen), dtype=table_dtype(table, shape))
    if not len(chosen):
        return rows
    place = chosen
    for name, (_, size) in zip(reversed(table.by), reversed(shape.axes), strict=True):
        if name:
            rows[name] = place % size
        place = place // size
    for name in (*table.keys, *table.gauges):
        rows[_column(name)] = member(snapshots.after, name)[chosen]
    fresh = _given_to_another(table, snapshots, chosen)
    for path in table.counters:
        rows[_column(path)] = _difference(path, snapshots, chosen, fresh)
    if table.histogram:
        rows["sum"] = _difference(f"{table.histogram}.sum", snapshots, chosen, fresh)
        rows["slots"] = _difference(f"{table.histogram}.slots", snapshots, chosen, fresh)
    return rows


# Below, members are taken first and rows of them then: a row of the map holds a kilobyte of other members.


def _changed(table: Table, snapshots: Snapshots) -> _Index:
    """Pick the rows in which anything counted: comparing whole histograms would read all of a big node's memory."""
    rows = snapshots.rows
    changed = np.zeros(len(rows), dtype=bool)
    for path in table.counters:
        changed |= member(snapshots.before, path)[rows] != member(snapshots.after, path)[rows]
    if table.histogram:
        earlier, later = (member(side, table.histogram) for side in (snapshots.before, snapshots.after))
        changed |= earlier["sum"][rows] != later["sum"][rows]
        # Only zeros leave the sum as it is, and they have a slot of their own.
        changed |= earlier["slots"][rows, 0] != later["slots"][rows, 0]
    return rows[changed]


def _given_to_another(table: Table, snapshots: Snapshots, chosen: _Index) -> npt.NDArray[np.bool_]:
    """Tell the rows that changed hands: their counters began at zero again."""
    fresh = np.zeros(len(chosen), dtype=bool)
    for name in table.keys:
        fresh |= snapshots.before[name][chosen] != snapshots.after[name][chosen]
    return fresh


def _difference(path: str, snapshots: Snapshots, chosen: _Index, fresh: npt.NDArray[np.bool_]) -> np.ndarray:
    before, after = member(snapshots.before, path)[chosen], member(snapshots.after, path)[chosen]
    before[fresh] = 0
    after -= before
    return after


def _column(path: str) -> str:
    return path.replace(".", "_")
