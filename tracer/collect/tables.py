"""Turn the difference of two snapshots into a table's rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.collect.counts import Counts
from tracer.collect.snapshots import Snapshots
from tracer.histogram import SLOTS
from tracer.kernel.job import MapShape
from tracer.probe import Table

__all__ = ["TableRows"]

_Index = npt.NDArray[np.intp]


class TableRows:
    """Makes one table's rows of a map's snapshots, interval by interval.

    ``dtype`` is the rows' layout: axes, keys, counters, gauges and peaks, then a histogram's sum and slots.
    """

    def __init__(self, table: Table, shape: MapShape, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._axes = [(name, size) for name, (_, size) in zip(reversed(table.by), reversed(shape.axes), strict=True)]
        self._values = [(_column(path), path) for path in (*table.keys, *table.gauges, *table.peaks)]
        self._counts = [(_column(path), path) for path in table.counters]
        fields: list[Any] = [(name, "u4") for name in table.by if name]
        fields += [(name, shape.dtype[name]) for name in table.keys]
        fields += [(_column(path), "u8") for path in (*table.counters, *table.gauges, *table.peaks)]
        if table.histogram:
            fields += [("sum", "u8"), ("slots", "u4", (SLOTS,))]
            self._counts += [(name, f"{table.histogram}.{name}") for name in ("sum", "slots")]
        self.dtype = np.dtype(fields)
        self._counted = Counts(snapshots, [path for _, path in self._counts])
        self._none = np.zeros(0, self.dtype)

    def read(self) -> np.ndarray:
        """Return the rows in which anything counted between the snapshots, as ``Window.rows`` describes them.

        Differences are taken modulo the counter's width: a u32 cell may wrap between two snapshots. Counts go on when
        a row is given to another key, so what it counted in the interval is told under that.
        """
        snapshots = self._snapshots
        chosen = self._counted.moved()
        if not len(chosen):
            return self._none
        rows = np.empty(len(chosen), self.dtype)
        place = chosen
        for name, size in self._axes:
            if name:
                rows[name] = place % size
            place = place // size
        # Members are taken first and rows of them then: a row of the map holds a kilobyte of other members.
        for column, path in self._values:
            rows[column] = snapshots.now[path][chosen]
        for column, path in self._counts:
            np.subtract(snapshots.now[path][chosen], snapshots.was[path][chosen], out=rows[column])
        return rows


def _column(path: str) -> str:
    return path.replace(".", "_")
