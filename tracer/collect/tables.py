"""Turn the difference of two snapshots into a table's rows."""

from __future__ import annotations

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
    fields: list[Any] = [(name, "u4") for name in table.by if name]
    fields += [(name, shape.dtype[name]) for name in table.keys]
    fields += [(_column(path), "u8") for path in table.counters]
    fields += [(_column(path), "u8") for path in table.gauges]
    if table.histogram:
        fields += [("sum", "u8"), ("slots", "u4", (SLOTS,))]
    return np.dtype(fields)


def table_rows(table: Table, shape: MapShape, snapshots: Snapshots) -> np.ndarray:
    """Return the rows that changed between the snapshots, as ``Window.rows`` describes them.

    Differences are taken modulo the counter's width: a u32 cell may wrap between two snapshots.
    """
    chosen = _changed(table, snapshots)
    before, after = snapshots.before[chosen], snapshots.after[chosen]
    fresh = _given_to_another(table, before, after)
    rows = np.zeros(len(chosen), dtype=table_dtype(table, shape))
    for name, index in zip(table.by, np.unravel_index(chosen, [size for _, size in shape.axes]), strict=True):
        if name:
            rows[name] = index
    for name in (*table.keys, *table.gauges):
        rows[_column(name)] = member(after, name)
    for path in table.counters:
        rows[_column(path)] = _difference(member(before, path), member(after, path), fresh)
    if table.histogram:
        earlier, later = member(before, table.histogram), member(after, table.histogram)
        rows["sum"] = _difference(earlier["sum"], later["sum"], fresh)
        rows["slots"] = _difference(earlier["slots"], later["slots"], fresh[:, None])
    return rows


def _changed(table: Table, snapshots: Snapshots) -> _Index:
    """Pick the rows in which anything counted: comparing whole histograms would read all of a big node's memory."""
    before, after = snapshots.before[snapshots.rows], snapshots.after[snapshots.rows]
    changed = np.zeros(len(snapshots.rows), dtype=bool)
    for path in table.counters:
        changed |= member(before, path) != member(after, path)
    if table.histogram:
        earlier, later = member(before, table.histogram), member(after, table.histogram)
        # Only zeros leave the sum as it is, and they have a slot of their own.
        changed |= (earlier["sum"] != later["sum"]) | (earlier["slots"][:, 0] != later["slots"][:, 0])
    return snapshots.rows[changed]


def _given_to_another(table: Table, before: np.ndarray, after: np.ndarray) -> npt.NDArray[np.bool_]:
    """Tell the rows that changed hands: their counters began at zero again."""
    fresh = np.zeros(len(after), dtype=bool)
    for name in table.keys:
        fresh |= before[name] != after[name]
    return fresh


def _difference(before: np.ndarray, after: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    return after - np.where(fresh, np.zeros_like(before), before)


def _column(path: str) -> str:
    return path.replace(".", "_")
