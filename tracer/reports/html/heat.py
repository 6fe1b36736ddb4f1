"""Latency by time: a histogram per bin of each series."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.names import vector
from tracer.analysis.rows import has
from tracer.histogram import SLOTS
from tracer.probes import all_probes
from tracer.reports.html.blob import Blob
from tracer.reports.html.bycpu import ByCpu
from tracer.reports.html.grid import Grid
from tracer.window import Window

__all__ = ["MOST_SERIES", "Heat"]

#: Each takes 2.4 MB here.
MOST_SERIES = 48
#: Of these, what differs by softirq is a series of its own.
_BY_VECTOR = frozenset({("softirq", "delay"), ("softirq", "run")})

_Name = tuple[str, str, str]  # probe, table, part


class Heat:
    """Histograms by bin. ``unkept`` counts the windows of series that found no room."""

    def __init__(self) -> None:
        self.unkept = 0
        self._series: dict[_Name, Grid] = {}
        self._by_cpu: dict[_Name, ByCpu] = {}

    def add(self, bin: int, window: Window) -> None:
        """Add one window that holds histograms."""
        window, why = checked(window)
        rows = window.rows
        if why or not has(rows, "slots") or not len(rows):
            return
        name = (window.probe, window.table)
        parts = _by_vector(rows) if name in _BY_VECTOR else {}
        sums = {part: some["slots"].sum(axis=0, dtype=np.uint64) for part, some in parts.items()}
        every = np.sum([*sums.values()], axis=0) if sums else rows["slots"].sum(axis=0, dtype=np.uint64)
        self._add((*name, ""), bin, rows, every)
        for part, slots in sums.items():
            if slots.any():
                self._add((*name, part), bin, parts[part], slots)

    def halve(self) -> None:
        for grid in self._series.values():
            grid.halve()
        for by_cpu in self._by_cpu.values():
            by_cpu.halve()

    def packed(self, blob: Blob, bins: int, by_cpu: int) -> Iterator[dict[str, Any]]:
        """Yield the series that counted anything: ``starts`` (bins + 1), and ``slots`` and ``counts`` in use by bin.

        All together have at most ``by_cpu`` cells by CPU.
        """
        for (probe, table, part), grid in sorted(self._series.items()):
            values = grid.values[:bins]
            used_bins, slots = np.nonzero(values)
            if not len(slots):
                continue
            starts = np.searchsorted(used_bins, np.arange(bins + 1))
            yield {
                "name": f"{probe}.{table}",
                "part": part,
                "help": _help(probe, table),
                "starts": blob.add(starts.astype("<u4")),
                "slots": blob.add(slots.astype("<u2")),
                "counts": blob.add(values[used_bins, slots].astype("<u4")),
                "by_cpu": found.packed(blob, by_cpu // len(self._by_cpu))
                if (found := self._by_cpu.get((probe, table, part)))
                else None,
            }

    def _add(self, name: _Name, bin: int, rows: np.ndarray, slots: np.ndarray) -> None:
        if name not in self._series:
            if len(self._series) >= MOST_SERIES:
                self.unkept += 1
                return
            self._series[name] = Grid((SLOTS,), "u4")
            if has(rows, "cpu"):
                self._by_cpu[name] = ByCpu()
        self._series[name].add(bin, slots)
        if name in self._by_cpu and has(rows, "cpu"):
            self._by_cpu[name].add(bin, rows["cpu"], rows["slots"])


def _by_vector(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows of each softirq."""
    column = rows["vector"]
    return {vector(number): rows.take(places) for number, places in _places(column.tobytes(), column.dtype)}


# Every interval has the same rows.
@lru_cache(maxsize=4)
def _places(vectors: bytes, dtype: np.dtype) -> list[tuple[int, np.ndarray]]:
    """Return where each vector is."""
    column = np.frombuffer(vectors, dtype)
    places = np.argsort(column, kind="stable")
    distinct, starts = np.unique(column[places], return_index=True)
    return [*zip(distinct.tolist(), np.split(places, starts[1:]), strict=True)]


def _help(probe: str, table: str) -> str:
    tables = all_probes()[probe].tables if probe in all_probes() else ()
    return next((one.help for one in tables if one.name == table), "")
