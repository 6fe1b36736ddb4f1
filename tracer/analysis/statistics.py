"""The numbers people ask of a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tracer import histogram
from tracer.analysis import thresholds

__all__ = ["NOTHING", "Statistics", "judged", "least"]


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
        # What histogram.quantile_ns and max_ns say one by one, in one pass: a big node has thousands of histograms.
        cumulative = np.cumsum(slots, dtype=np.uint64)
        total = int(cumulative[-1])
        if not total:
            return NOTHING
        ranks = np.maximum(1, np.ceil(np.multiply(_FRACTIONS, total))).astype(np.uint64)
        p50, p90, p99, p999, most = (_upper_ns()[slot] for slot in np.searchsorted(cumulative, ranks).tolist())
        return cls(total, int(sum_ns), p50, p90, p99, p999, most)

    @property
    def told(self) -> Statistics:
        """The same without the quantiles that one or two single values decide: NaN, as if not measured."""
        values = (self.p50_ns, self.p90_ns, self.p99_ns, self.p999_ns, self.max_ns)
        # The maximum is one value, and says so.
        p50, p90, p99, p999, most = (
            ns if fraction == 1 or self.count >= least(fraction) else _NAN
            for ns, fraction in zip(values, _FRACTIONS, strict=True)
        )
        return Statistics(self.count, self.sum_ns, p50, p90, p99, p999, most)

    @property
    def mean_ns(self) -> float:
        """Sum over count: exact, unlike the quantiles."""
        return self.sum_ns / self.count if self.count else float("nan")


def least(fraction: float) -> int:
    """Return of how many values a quantile may be told: as many lie beyond it as beyond a p99 that rules judge."""
    return round(thresholds.LEAST_SAMPLES * (1 - 0.99) / (1 - fraction))


def judged(one: Statistics) -> bool:
    """Return whether there are enough values for rules to judge their p99."""
    return one.count >= thresholds.LEAST_SAMPLES


@cache
def _upper_ns() -> list[float]:
    return [*map(float, histogram.edges_ns()[:-1]), float("inf")]


_FRACTIONS = (0.5, 0.9, 0.99, 0.999, 1.0)  # the slot where all are reached is the maximum's
_NAN = float("nan")
NOTHING = Statistics(0, 0, _NAN, _NAN, _NAN, _NAN, _NAN)
