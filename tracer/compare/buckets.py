"""One node's numbers by time of day, in memory that doesn't grow with the length of its recording.

A bucket is ``length_ns`` long and begins at a multiple of it, in UTC. When there are too many, pairs of them are added
up, so that the buckets of nodes which recorded for different times still share their edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tracer.compare.metrics import Series
from tracer.histogram import SLOTS
from tracer.units import SECOND

__all__ = ["MOST_BUCKETS", "Buckets", "Compact", "folded"]

#: Ten minutes are 38 of 16 s. More would only cost memory: persistence is judged over four.
MOST_BUCKETS = 40


@dataclass(frozen=True)
class Compact:
    """Histograms by bucket, shape ``(buckets, used slots)``, of the slots from ``first`` on: a tenth of all."""

    first: int
    counts: np.ndarray

    @classmethod
    def from_slots(cls, slots: np.ndarray) -> Compact:
        """Keep what is used of ``slots``, shape ``(buckets, SLOTS)``."""
        used = np.flatnonzero(slots.any(axis=0))
        low, high = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
        kept = slots[:, low:high]
        return cls(low, kept.astype(np.min_scalar_type(int(kept.max(initial=0)))))


@dataclass
class Buckets:
    """``histograms`` have shape ``(MOST_BUCKETS, SLOTS)``, ``numbers`` (above, below) ``(MOST_BUCKETS, 2)``.

    ``ranks`` is what each did, by job and rank, shape ``(MOST_BUCKETS, kinds of time)``.

    ``seen_ns`` is how much time each bucket holds, shape ``(MOST_BUCKETS,)``. ``first`` is the number of the first
    bucket since 1970. ``most`` series are kept; ``unkept`` counts rows of others.
    """

    length_ns: int = SECOND
    most: int = 96
    first: int = 0
    used: int = 0
    unkept: int = 0
    histograms: dict[Series, np.ndarray] = field(default_factory=dict)
    numbers: dict[Series, np.ndarray] = field(default_factory=dict)
    ranks: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    seen_ns: np.ndarray = field(default_factory=lambda: np.zeros(MOST_BUCKETS, np.int64))

    def place(self, unix_ns: int) -> int:
        """Return the bucket of a moment, -1 for one before the first: a clock that was set back."""
        if not self.used:
            self.first = unix_ns // self.length_ns
        while (place := unix_ns // self.length_ns - self.first) >= MOST_BUCKETS:
            self._fold()
        self.used = max(self.used, place + 1)
        return place

    def add_time(self, bucket: int, ns: int) -> None:
        """Add the length of an interval."""
        self.seen_ns[bucket] += ns

    def add_slots(self, series: Series, bucket: int, slots: np.ndarray) -> None:
        """Add a histogram, shape ``(SLOTS,)``."""
        if (kept := self._kept(self.histograms, series, SLOTS)) is not None:
            kept[bucket] += slots

    def add_numbers(self, series: Series, bucket: int, above: float, below: float) -> None:
        """Add to both parts of a ratio."""
        if (kept := self._kept(self.numbers, series, 2)) is not None:
            kept[bucket] += (above, below)

    def add_rank(self, rank: tuple[str, int], bucket: int, times: np.ndarray) -> None:
        """Add what a rank did, shape ``(kinds of time,)``."""
        if rank not in self.ranks:
            self.ranks[rank] = np.zeros((MOST_BUCKETS, len(times)))
        self.ranks[rank][bucket] += times

    def _kept(self, series_of: dict[Series, np.ndarray], series: Series, width: int) -> np.ndarray | None:
        if series not in series_of:
            if len(series_of) >= self.most:
                self.unkept += 1
                return None
            series_of[series] = np.zeros((MOST_BUCKETS, width), np.uint64 if width == SLOTS else np.float64)
        return series_of[series]

    def _fold(self) -> None:
        for series_of in (self.histograms, self.numbers):
            for series, values in series_of.items():
                series_of[series] = _padded(folded(values, self.first, 1))
        self.ranks = {rank: _padded(folded(times, self.first, 1)) for rank, times in self.ranks.items()}
        self.seen_ns = _padded(folded(self.seen_ns, self.first, 1))
        self.used = (self.first + self.used - 1) // 2 - self.first // 2 + 1
        self.first //= 2
        self.length_ns *= 2


def folded(values: np.ndarray, first: int, times: int) -> np.ndarray:
    """Return ``values``, shape ``(n, …)``, with pairs of buckets added up ``times`` times.

    ``first`` is the number of the first bucket.
    """
    # What fits a narrow type may not fit it added up.
    kind = np.uint64 if values.dtype.kind == "u" else None
    places = (first + np.arange(len(values)) >> times) - (first >> times)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    return np.add.reduceat(values, starts, axis=0, dtype=kind) if len(values) else values


def _padded(values: np.ndarray) -> np.ndarray:
    whole = np.zeros((MOST_BUCKETS, *values.shape[1:]), values.dtype)
    whole[: len(values)] = values
    return whole


def base_length_ns(interval_ns: int) -> int:
    """Return the shortest bucket for intervals of that length: a power of two of seconds."""
    seconds = max(1, -(-interval_ns // SECOND))
    return SECOND << max(0, (seconds - 1).bit_length())


def total(buckets: Iterable[np.ndarray]) -> int:
    """Return how many values histograms hold."""
    return sum(int(slots.sum()) for slots in buckets)
