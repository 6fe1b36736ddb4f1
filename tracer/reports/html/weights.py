"""What weighed how much in each bin, in bounded memory: where there is too much to tell apart, bins become longer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracer.reports.html.blob import Blob
from tracer.reports.html.timeline import MOST_BINS

__all__ = ["BY_CPU_STEPS", "NOTHING", "Rows", "Weights"]

#: By CPU, time is told in fewer steps than a screen has room for.
BY_CPU_STEPS = 128
_MOST = 1 << 18
_BIN, _NUMBER = np.uint64(32), np.uint64((1 << 32) - 1)


class Rows(NamedTuple):
    """Weights by bin and number, shapes ``(n,)``, in this order, each pair once."""

    bins: np.ndarray
    numbers: np.ndarray
    weights: np.ndarray


NOTHING = Rows(np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0, np.uint64))


class Weights:
    """Sums by bin and number, about ``most``, in ``steps`` bins at most: these are 2**``longer`` of the others'.

    What numbers stand for is the caller's; the less they are, the less room they take.

    Attributes:
        untold: the weight of what was left out.
    """

    def __init__(self, most: int = _MOST, steps: int = MOST_BINS) -> None:
        self.longer = 0
        self.untold = 0
        self._most, self._steps = most, steps
        # What one step has got so far is dense: adding to it costs little, however many intervals it has.
        self._step = 0
        self._latest = np.zeros(0, np.uint64)
        #: Bins and numbers as one, and weights. Together they are in order, unless bins came that are older.
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []
        self._count = 0

    def add(self, bin: int, numbers: np.ndarray, weights: np.ndarray) -> None:
        """Add to a bin; numbers may come again. What has none (below 0) is ``untold``."""
        if not len(numbers):
            return
        if numbers.min() < 0:
            self.untold += int(weights[numbers < 0].sum())
            numbers, weights = numbers[numbers >= 0], weights[numbers >= 0]
        if bin >> self.longer != self._step:
            self._flush()
            self._step = bin >> self.longer
        if (more := int(numbers.max(initial=-1)) + 1 - len(self._latest)) > 0:
            self._latest = np.concatenate([self._latest, np.zeros(max(more, len(self._latest)), np.uint64)])
        np.add.at(self._latest, numbers, weights.astype(np.uint64))

    def put(self, bin: int, numbers: np.ndarray, weights: np.ndarray) -> None:
        """Add to a bin; numbers ascend."""
        while bin >> self.longer >= self._steps:
            self._lengthen(1)
            self.longer += 1
        keys = numbers.astype(np.uint64) | (np.uint64(bin >> self.longer) << _BIN)
        self._parts.append((keys, weights.astype(np.uint64)))
        self._count += len(keys)
        if self._count > self._most:
            self._fit(self._most)

    def halve(self) -> None:
        """Follow a time axis whose bins have become twice as long."""
        self._flush()
        if self.longer:
            self.longer -= 1
        else:
            self._lengthen(1)

    def few(self, most: int) -> Rows:
        """Return at most ``most`` rows: if there are more, bins become longer, and the lightest are ``untold``."""
        self._flush()
        self._fit(most)
        keys, weights = self._merged()
        return Rows((keys >> _BIN).astype(np.uint32), (keys & _NUMBER).astype(np.int64), weights)

    def totals(self, numbers: int) -> np.ndarray:
        """Return what each of so many numbers weighs in all bins, shape ``(numbers,)``."""
        self._flush()
        keys, weights = self._merged()
        found = np.zeros(numbers, np.uint64)
        np.add.at(found, (keys & _NUMBER).astype(np.int64), weights)
        return found

    def keep(self, numbers: np.ndarray) -> None:
        """Leave out all other numbers; these, which ascend, are 0, 1, … from now on."""
        self._flush()
        keys, weights = self._merged()
        place = np.searchsorted(numbers, keys & _NUMBER)
        kept = numbers.take(place, mode="clip") == keys & _NUMBER
        self.untold += int(weights[~kept].sum())
        self._parts = [((keys & ~_NUMBER | place.astype(np.uint64))[kept], weights[kept])]

    def packed(
        self, blob: Blob, rows: Rows, cpus: np.ndarray, leaves: np.ndarray, scale: float
    ) -> dict[str, Any] | None:
        """Return what ``few`` has returned, for the page, with each row's CPU and node; None where that isn't all."""
        if self.untold:
            return None
        return {
            "longer": self.longer,
            "bins": blob.add(rows.bins),
            "cpus": blob.add(cpus.astype("<u4")),
            "leaves": blob.add(leaves.astype("<u4")),
            "weights": blob.add(rows.weights * scale),
        }

    def _flush(self) -> None:
        numbers = np.flatnonzero(self._latest)
        if len(numbers):
            weights = self._latest.take(numbers)
            self._latest[numbers] = 0
            self.put(self._step << self.longer, numbers, weights)

    def _fit(self, most: int) -> None:
        keys, weights = self._merged()
        while len(keys) > most and keys[-1] >> _BIN:
            # Bins that are 2**n times as long leave the 2**n-th part of the rows at best.
            by = max(1, (len(keys) // most).bit_length() - 1)
            self._lengthen(by)
            self.longer += by
            keys, weights = self._merged()
        if len(keys) > most:
            places = np.argsort(weights, kind="stable")
            self.untold += int(weights.take(places[:-most]).sum())
            kept = np.sort(places[-most:])
            self._parts, self._count = [(keys.take(kept), weights.take(kept))], most

    def _lengthen(self, by: int) -> None:
        keys, weights = self._merged()
        self._parts = [(keys >> np.uint64(by) & ~_NUMBER | keys & _NUMBER, weights)]

    def _merged(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all parts as one."""
        keys = np.concatenate([np.zeros(0, np.uint64), *(keys for keys, _ in self._parts)])
        weights = np.concatenate([np.zeros(0, np.uint64), *(weights for _, weights in self._parts)])
        if not (keys[1:] > keys[:-1]).all():
            # In runs that ascend already, which a merge sort makes use of.
            places = np.argsort(keys, kind="stable")
            ordered = keys.take(places)
            starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
            keys, weights = ordered.take(starts), np.add.reduceat(weights.take(places), starts)
        self._parts, self._count = [(keys, weights)], len(keys)
        return keys, weights
