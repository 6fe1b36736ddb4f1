"""Latency by time and CPU: a series' histograms of each CPU, in longer bins than those of all CPUs together."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.histogram import SLOTS
from tracer.reports.html.blob import Blob
from tracer.reports.html.lanes import MOST_CPUS
from tracer.reports.html.weights import Weights

__all__ = ["ByCpu"]


class ByCpu:
    """One series. Values of CPUs from ``MOST_CPUS`` on are left out."""

    def __init__(self) -> None:
        self._weights = Weights(("cpu", "u4"), ("slot", "u2"))
        # What one bin has got so far is dense: adding to it costs little, however many intervals a bin has.
        self._bin = 0
        self._latest = np.zeros((0, SLOTS), np.uint32)

    def add(self, bin: int, cpus: np.ndarray, slots: np.ndarray) -> None:
        """Add histograms, ``slots`` of shape ``(rows, SLOTS)``, each of one of ``cpus``."""
        if bin != self._bin:
            self._flush()
            self._bin = bin
        cpus = cpus.astype(np.int64)
        inside = (cpus >= 0) & (cpus < MOST_CPUS)
        if not inside.all():
            cpus, slots = cpus[inside], slots[inside]
        if not len(cpus):
            return
        if (cpus[1:] <= cpus[:-1]).any():
            order = np.argsort(cpus, kind="stable")
            cpus, starts = np.unique(cpus[order], return_index=True)
            slots = np.add.reduceat(slots[order], starts, axis=0, dtype=np.uint32)
        if cpus[-1] >= len(self._latest):
            more = np.zeros((int(cpus[-1]) + 1 - len(self._latest), SLOTS), np.uint32)
            self._latest = np.concatenate([self._latest, more])
        self._latest[cpus] += slots

    def halve(self) -> None:
        self._flush()
        self._weights.halve()
        self._bin >>= 1

    def packed(self, blob: Blob, most: int) -> dict[str, Any]:
        """Return ``bins``, ``cpus``, ``slots`` and ``counts`` of at most ``most`` cells; bins are 2**``longer``."""
        self._flush()
        rows = self._weights.few(most)
        return {
            "longer": self._weights.longer,
            "bins": blob.add(rows["bin"].astype("<u2")),
            "cpus": blob.add(rows["cpu"].astype("<u2")),
            "slots": blob.add(rows["slot"]),
            "counts": blob.add(np.minimum(rows["weight"], np.iinfo(np.uint32).max).astype("<u4")),
        }

    def _flush(self) -> None:
        cpus, slots = np.nonzero(self._latest)
        if not len(cpus):
            return
        rows = np.zeros(len(cpus), [("cpu", "u4"), ("slot", "u2"), ("weight", "u8")])
        rows["cpu"], rows["slot"], rows["weight"] = cpus, slots, self._latest[cpus, slots]
        self._weights.add(self._bin, rows)
        self._latest[:] = 0
