"""A node with 256 CPUs, made up in memory: its maps, filled as a busy interval would, read by the real collector."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tracer.collect.collector import Collector
from tracer.kernel.job import Options, map_shapes, ordered
from tracer.layouts import layout
from tracer.probe import Map
from tracer.probes import all_probes

__all__ = ["CPUS", "Names", "Node", "time_collect"]

CPUS = 256

#: Rows in use per CPU, of the maps that have several; elsewhere the first row.
_ACTIVE = {"hardirq_rows": 10, "softirq_rows": 6, "napi_rows": 1}
_SLOTS_IN_USE = 24


class Node:
    """What the collector needs of a session, without a kernel."""

    def __init__(self, cpus: int = CPUS) -> None:
        every = all_probes()
        chosen = [probe for probe in every.values() if probe.tier == "light" and probe.hooks]
        self.probes = ordered(chosen, every)
        self.options = Options(cpus, range(cpus))
        self.shapes = map_shapes(self.probes, cpus)
        self.refused: dict[str, str] = {}
        self._arrays = {name: np.zeros(shape.rows, dtype=shape.dtype) for name, shape in self.shapes.items()}
        self._cpus = cpus
        self._random = np.random.default_rng(1)

    def array(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def events(self) -> Iterator[Any]:
        return iter(())

    def stack(self, tid: int) -> bytes:
        return b""

    def count(self) -> None:
        """Let an interval pass: every active row of every CPU counts something."""
        for probe in self.probes:
            for declared in probe.maps:
                if declared.axes and declared.axes[0] == "cpu":
                    self._count_in(declared)

    def _count_in(self, declared: Map) -> None:
        rows = self._arrays[declared.name].reshape(self._cpus, -1)
        active = min(_ACTIVE.get(declared.name, 1), rows.shape[1])
        for place in range(active):
            self._count_row(rows[:, place], place)

    def _count_row(self, rows: np.ndarray, place: int) -> None:
        """``rows``, shape (cpus,): the same row of every CPU."""
        histogram = layout("hist", "hist")
        for name, (kind, *_) in (rows.dtype.fields or {}).items():
            if kind == histogram:
                first = int(self._random.integers(20, 200))
                counts = self._random.integers(0, 50, (len(rows), _SLOTS_IN_USE))
                rows[name]["slots"][:, first : first + _SLOTS_IN_USE] += counts.astype("u4")
                rows[name]["sum"] += counts.sum(axis=1, dtype="u8") * np.uint64(2000)
            elif name in ("irq", "napi_id", "ifindex", "budget"):
                rows[name] = place + 1
            elif name in ("name", "device"):
                rows[name] = f"device-{place}".encode()
            elif name.endswith("_ns") or name in ("switches", "polls", "work"):
                rows[name] += self._random.integers(1, 1_000_000, len(rows)).astype(kind)


class Names:
    """Nothing has a cgroup here."""

    def cgroup(self, cgroup_id: int) -> bytes:
        return b""

    def cgroup_of(self, pid: int) -> bytes:
        return b""


def time_collect(intervals: int) -> list[float]:
    """Return how long the collector took for each interval, in ms."""
    session = Node()
    session.count()
    collector = Collector(session, Names())  # type: ignore[arg-type]
    took = []
    for _ in range(intervals):
        session.count()
        began = time.perf_counter()
        windows = collector.collect()
        took.append(1e3 * (time.perf_counter() - began))
    rows = {f"{window.probe}.{window.table}": len(window.rows) for window in windows}
    assert rows["runqueue.wait"] == CPUS, rows
    assert rows["softirq.run"] == CPUS * _ACTIVE["softirq_rows"], rows
    return took
