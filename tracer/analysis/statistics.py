"""The numbers people ask of a histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer import histogram

__all__ = ["Statistics", "NOTHING"]


@dataclass(frozen=True)
class Statistics:
    """A histogram in a few numbers.

    Quantiles and the maximum are upper edges of buckets: at most 9 % above the true value, never below.
    NaN where nothing was counted, inf above the last edge.
    """

    count: int
    sum_ns: int
    p50_ns: float
    p90_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float

    @classmethod
    def from_slots(cls, slots: np.ndarray, sum_ns: int) -> Statistics:
        """Summarise one histogram, shape ``(SLOTS,)``, with its sum."""
        total = int(histogram.count(slots))
        p50, p90, p99, p999 = (histogram.quantile_ns(slots, fraction) for fraction in (0.5, 0.9, 0.99, 0.999))
        return cls(total, int(sum_ns), p50, p90, p99, p999, histogram.max_ns(slots))

    @property
    def mean_ns(self) -> float:
        """Sum over count: exact, unlike the quantiles."""
        return self.sum_ns / self.count if self.count else float("nan")


_NAN = float("nan")
NOTHING = Statistics(0, 0, _NAN, _NAN, _NAN, _NAN, _NAN)
