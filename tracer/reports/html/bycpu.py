"""Latency by time and CPU: a series' histograms of each CPU, in longer bins than those of all CPUs together."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.histogram import SLOTS
from tracer.reports.html.blob import Blob
from tracer.reports.html.lanes import MOST_CPUS
from tracer.reports.html.weights import BY_CPU_STEPS, Weights

__all__ = ["ByCpu"]


class ByCpu:
    """One series. Values of CPUs from ``MOST_CPUS`` on are left out."""

    def __init__(self) -> None:
        self._weights = Weights(steps=BY_CPU_STEPS)
        # What one step has got so far is dense: adding to it costs little, however many intervals it has.
        self._step = 0
        self._latest = np.zeros((0, SLOTS), np.uint32)
        # Rows come in the same order every time.
        self._cpus = b""
        self._order: np.ndarray | None = None
        self._starts = np.zeros(0, np.int64)
        self._places: np.ndarray | slice = slice(0, 0)

    def add(self, bin: int, cpus: np.ndarray, slots: np.ndarray) -> None:
        """Add histograms, ``slots`` of shape ``(rows, SLOTS)``, each of one of ``cpus``."""
        if bin >> self._weights.longer != self._step:
            self._flush()
            self._step = bin >> self._weights.longer
        if (told := cpus.tobytes()) != self._cpus:
            self._learn(cpus.astype(np.int64))
            self._cpus = told
        if self._order is not None:
            slots = np.add.reduceat(slots.take(self._order, axis=0), self._starts, axis=0, dtype=np.uint32)
        self._latest[self._places] += slots

    def _learn(self, cpus: np.ndarray) -> None:
        """Note which rows are of which CPU."""
        inside = np.flatnonzero((cpus >= 0) & (cpus < MOST_CPUS))
        order = inside.take(np.argsort(cpus[inside], kind="stable"))
        distinct, self._starts = np.unique(cpus[order], return_index=True)
        highest = int(distinct[-1]) + 1 if len(distinct) else 0
        if highest > len(self._latest):
            more = np.zeros((highest - len(self._latest), SLOTS), np.uint32)
            self._latest = np.concatenate([self._latest, more])
        in_order = len(distinct) == len(cpus) and (order == np.arange(len(order))).all()
        self._order = None if in_order else order
        self._places = slice(0, highest) if len(distinct) == highest else distinct

    def halve(self) -> None:
        self._flush()
        self._weights.halve()

    def packed(self, blob: Blob, most: int) -> dict[str, Any]:
        """Return ``bins``, ``cpus``, ``slots`` and ``counts`` of at most ``most`` cells; bins are 2**``longer``."""
        self._flush()
        rows = self._weights.few(most)
        cpus, slots = np.divmod(rows.numbers, SLOTS)
        return {
            "longer": self._weights.longer,
            "bins": blob.add(rows.bins.astype("<u2")),
            "cpus": blob.add(cpus.astype("<u2")),
            "slots": blob.add(slots.astype("<u2")),
            "counts": blob.add(np.minimum(rows.weights, np.iinfo(np.uint32).max).astype("<u4")),
        }

    def _flush(self) -> None:
        latest = self._latest.reshape(-1)
        if len(numbers := np.flatnonzero(latest)):
            self._weights.put(self._step << self._weights.longer, numbers, latest.take(numbers))
            latest[numbers] = 0
