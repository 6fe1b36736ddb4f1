"""What weighed how much in each bin, in bounded memory: where there is too much to tell apart, bins become longer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.analysis.order import order
from tracer.analysis.sums import MOST_KEYS, Sums
from tracer.reports.html.blob import Blob
from tracer.reports.html.timeline import MOST_BINS

__all__ = ["BY_CPU_STEPS", "Weights"]

#: By CPU, time is told in fewer steps than a screen has room for.
BY_CPU_STEPS = 128


class Weights:
    """Sums of ``weight`` by bin and ``keys`` (names and types of columns). Bins are 2**``longer`` of the others'.

    While they are gathered there are about ``most`` at most, in ``steps`` bins at most.
    """

    def __init__(self, *keys: tuple[str, str], most: int = MOST_KEYS // 2, steps: int = MOST_BINS) -> None:
        self.longer = 0
        self._most, self._steps = most, steps
        self._keys = np.dtype([("bin", "u4"), *keys])
        self._sums = Sums(self._keys, ("weight",))

    @property
    def untold(self) -> int:
        """The weight of what was left out."""
        return self._sums.other["weight"]

    def add(self, bin: int, rows: np.ndarray, **more: Any) -> None:
        """Add rows to a bin; columns that they lack are in ``more``."""
        while bin >> self.longer >= self._steps:
            self._lengthen(1)
            self.longer += 1
        self._sums.add(rows, bin=bin >> self.longer, **more)
        if len(self._sums) > self._most:
            self._fit(self._most)

    def halve(self) -> None:
        """Follow a time axis whose bins have become twice as long."""
        if self.longer:
            self.longer -= 1
        else:
            self._lengthen(1)

    def rows(self) -> np.ndarray:
        """Return all rows, in no order."""
        return self._sums.rows()

    def few(self, most: int) -> np.ndarray:
        """Return at most ``most`` rows, by bin: if there are more, bins become longer, the lightest ``untold``."""
        self._fit(most)
        rows = self.rows()
        return rows.take(order(rows["bin"]))

    def _fit(self, most: int) -> None:
        while (count := len(self.rows())) > most and self.rows()["bin"].any():
            # Bins that are 2**n times as long leave the 2**n-th part of the rows at best.
            by = max(1, (count // most).bit_length() - 1)
            self._lengthen(by)
            self.longer += by
        if count > most:
            self._begin_anew(self.rows(), most)
            self._begin_anew(self.rows())

    def _lengthen(self, by: int) -> None:
        rows = self.rows()
        rows["bin"] >>= by
        self._begin_anew(rows)

    def _begin_anew(self, rows: np.ndarray, most: int = MOST_KEYS) -> None:
        other = self._sums.other
        self._sums = Sums(self._keys, ("weight",), most)
        self._sums.other = other
        self._sums.add(rows)

    def packed(self, blob: Blob, rows: np.ndarray, leaves: np.ndarray, scale: float) -> dict[str, Any] | None:
        """Return what ``few`` has returned, for the page, with each row's node; None where that isn't all."""
        if self.untold:
            return None
        return {
            "longer": self.longer,
            "bins": blob.add(rows["bin"]),
            "cpus": blob.add(rows["cpu"]),
            "leaves": blob.add(leaves.astype("<u4")),
            "weights": blob.add(rows["weight"] * scale),
        }
