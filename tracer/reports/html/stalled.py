"""When CPUs made no progress, by time: what each CPU told of itself, and what others saw of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.rows import has, numbers, texts
from tracer.reports.html.timeline import Timeline
from tracer.window import Window

__all__ = ["MOST_STALLS", "Stalled"]

MOST_STALLS = 1 << 14
#: Of one stall, two beginnings differ by less: others see it from outside.
_SAME_NS = 250_000_000
#: A task that waits is no CPU that stands still.
_NO_STALL = "runnable"


class Stalled:
    """The stalls of ``cpustall.stalls`` and ``.open``, each once. ``unkept`` counts those that found no room."""

    def __init__(self) -> None:
        self.unkept = 0
        self._ends: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, window: Window) -> None:
        """Add a window: a stall is told again as it lasts."""
        window, why = checked(window)
        rows = window.rows
        if why or not len(rows):
            return
        if window.table == "open":
            ends = np.full(len(rows), window.end_ns, np.int64)
            lasted = rows["age_ns"].astype(np.int64)
            stuck = np.array([kind != _NO_STALL for kind in texts(rows, "kind")])
        else:
            lasted = rows["duration_ns"].astype(np.int64)
            ends = numbers(rows, "since_ns").astype(np.int64) + lasted
            stuck = np.full(len(rows), has(rows, "since_ns"))
        for cpu, end, length in zip(
            rows["cpu"][stuck].tolist(), ends[stuck].tolist(), lasted[stuck].tolist(), strict=True
        ):
            self._keep(cpu, end - length, end)

    def shares(self, cpus: Sequence[int], timeline: Timeline) -> np.ndarray:
        """Return which part of each bin a CPU stood still, shape ``(CPUs, bins)``, from 0 to 1."""
        found = np.zeros((len(cpus), timeline.bins))
        edges = timeline.start_ns + timeline.bin_ns * np.arange(timeline.bins + 1)
        place = {cpu: number for number, cpu in enumerate(cpus)}
        told_until: dict[int, int] = {}
        for cpu, start, end in sorted((cpu, start, end) for (cpu, _), (start, end) in self._ends.items()):
            if cpu in place:
                # Two accounts of one stall are not two stalls.
                fresh = max(start, told_until.get(cpu, start))
                inside = np.minimum(edges[1:], end) - np.maximum(edges[:-1], fresh)
                found[place[cpu]] += np.maximum(inside, 0) / timeline.bin_ns
                told_until[cpu] = max(fresh, end)
        return found

    def _keep(self, cpu: int, start: int, end: int) -> None:
        key = cpu, start // _SAME_NS
        if key not in self._ends and len(self._ends) >= MOST_STALLS:
            self.unkept += 1
            return
        known_start, known_end = self._ends.get(key, (start, end))
        self._ends[key] = min(start, known_start), max(end, known_end)
