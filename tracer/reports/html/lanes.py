"""What each CPU did, by time: shares of its bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.rows import has
from tracer.reports.html.blob import Blob
from tracer.reports.html.grid import Grid
from tracer.reports.html.stalled import Stalled
from tracer.reports.html.timeline import Timeline
from tracer.window import Window

__all__ = ["MOST_CPUS", "STATES", "Lanes"]

STATES = ("running", "softirq", "hardirq", "idle")
MOST_CPUS = 1024
#: A share of 1; 255 stands for nothing known.
_WHOLE, _UNKNOWN = 250, 255


class Lanes:
    """Time by CPU, state and bin, and ``stalled``. ``unkept`` counts rows of CPUs that found no room."""

    def __init__(self) -> None:
        self.unkept = 0
        self.stalled = Stalled()
        self._cpus: dict[int, Grid] = {}

    def add(self, bin: int, window: Window) -> None:
        """Add a window of ``cpustate.time``."""
        window, why = checked(window)
        if why or not has(window.rows, "cpu"):
            return
        rows = window.rows
        if not len(rows):
            return
        times = np.stack([rows[f"{state}_ns"].astype(np.float64) for state in STATES], axis=1)
        for cpu, spent in zip(rows["cpu"].tolist(), times, strict=True):
            if cpu not in self._cpus and len(self._cpus) >= MOST_CPUS:
                self.unkept += 1
                continue
            self._cpus.setdefault(cpu, Grid((len(STATES),), "f8")).add(bin, spent)

    def halve(self) -> None:
        for grid in self._cpus.values():
            grid.halve()

    def packed(self, blob: Blob, timeline: Timeline) -> dict[str, Any]:
        """Return the CPUs, and ``shares`` of shape (CPUs, bins, states without idle) in 250ths; 255 is unknown.

        ``stalled`` is of shape (CPUs, bins): a part of the time above, whatever it was spent in.
        """
        cpus, bins = sorted(self._cpus), timeline.bins
        shares = np.full((len(cpus), bins, len(STATES) - 1), _UNKNOWN, np.uint8)
        for place, cpu in enumerate(cpus):
            times = self._cpus[cpu].values[:bins]
            total = times.sum(axis=1)
            known = np.flatnonzero(total > 0)
            shares[place, known] = np.rint(times[known, :-1] / total[known, None] * _WHOLE)
        stalled = np.rint(np.minimum(self.stalled.shares(cpus, timeline), 1) * _WHOLE).astype(np.uint8)
        return {"cpus": cpus, "states": STATES[:-1], "shares": blob.add(shares), "stalled": blob.add(stalled)}
