"""Latency by time: a histogram per bin of each series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.names import vector
from tracer.analysis.rows import has
from tracer.histogram import SLOTS
from tracer.probes import all_probes
from tracer.reports.html.blob import Blob
from tracer.reports.html.grid import Grid
from tracer.window import Window

__all__ = ["MOST_SERIES", "Heat"]

#: Each takes 2.4 MB here.
MOST_SERIES = 48
#: Of these, what differs by softirq is a series of its own.
_BY_VECTOR = frozenset({("softirq", "delay"), ("softirq", "run")})

_MOST_COUNT = np.uint64(2**32 - 1)
_Name = tuple[str, str, str]  # probe, table, part


class Heat:
    """Histograms by bin. ``unkept`` counts the windows of series that found no room."""

    def __init__(self) -> None:
        self.unkept = 0
        self._series: dict[_Name, Grid] = {}

    def add(self, bin: int, window: Window) -> None:
        """Add one window that holds histograms."""
        window, why = checked(window)
        rows = window.rows
        if why or not has(rows, "slots") or not len(rows):
            return
        name = (window.probe, window.table)
        parts = _by_vector(rows) if name in _BY_VECTOR else {"": rows["slots"].sum(axis=0, dtype=np.uint64)}
        for part, slots in parts.items():
            if not part or slots.any():
                self._add((*name, part), bin, slots)

    def halve(self) -> None:
        for grid in self._series.values():
            grid.halve()

    def packed(self, blob: Blob, bins: int) -> Iterator[dict[str, Any]]:
        """Yield the series that counted anything: ``starts`` (bins + 1), and ``slots`` and ``counts`` in use by bin."""
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
            }

    def _add(self, name: _Name, bin: int, slots: np.ndarray) -> None:
        if name not in self._series:
            if len(self._series) >= MOST_SERIES:
                self.unkept += 1
                return
            self._series[name] = Grid((SLOTS,), "u4")
        self._series[name].add(bin, np.minimum(slots, _MOST_COUNT))


def _by_vector(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return what all softirqs counted, as part "", and what each did."""
    found = {
        vector(number): rows["slots"][rows["vector"] == number].sum(axis=0, dtype=np.uint64)
        for number in np.unique(rows["vector"]).tolist()
    }
    every: np.ndarray = np.sum([*found.values()], axis=0)
    return {"": every, **found}


def _help(probe: str, table: str) -> str:
    tables = all_probes()[probe].tables if probe in all_probes() else ()
    return next((one.help for one in tables if one.name == table), "")
