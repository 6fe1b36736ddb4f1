"""A deviation in the numbers people ask for: the node's quantile beside the median and spread of its peers'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracer.analysis.statistics import Statistics
from tracer.compare.deviation import Deviation
from tracer.compare.metrics import Series
from tracer.compare.shapes import means_ns
from tracer.histogram import SLOTS

__all__ = ["Told", "Unit", "Values", "told_histogram", "told_number"]

Unit = Literal["ns", "share", "per second"]
_QUANTILES = (("p50", "p50_ns"), ("p90", "p90_ns"), ("p99", "p99_ns"), ("p99.9", "p999_ns"))
# Of all quantiles that differ about as much, the first of these is told.
_PREFERRED = ("p99", "p50", "p90", "p99.9", "mean")
_ABOUT = 0.9


@dataclass(frozen=True)
class Told:
    """A deviation with its numbers.

    ``quantity`` is the quantile or ``mean``, "" of a share or rate. ``value`` is the node's; ``median``, ``low`` and
    ``high`` (the quartiles) are those of its ``peers``; all in ``unit``, in the windows in which it deviates.
    """

    series: Series
    deviation: Deviation
    quantity: str
    unit: Unit
    value: float
    median: float
    low: float
    high: float
    peers: int

    @property
    def ratio(self) -> float:
        """The node's value beside the peers' median; NaN where either isn't known, or there is nothing to divide by."""
        return self.value / self.median if self.median else float("nan")


class Values:
    """Quantiles and means of histograms ``(nodes, windows, n)``, by stretch of windows; ``first`` is the first slot."""

    def __init__(self, slots: np.ndarray, first: int = 0) -> None:
        self._slots, self._first = slots, first
        self._known: dict[tuple[int, int], dict[str, np.ndarray]] = {}

    def within(self, begin: int, end: int) -> dict[str, np.ndarray]:
        """Return those in ns of all values in a stretch of windows, each of shape ``(nodes,)``, by name."""
        # Of many that deviate together most do so in the same windows.
        if (begin, end) not in self._known:
            merged = np.zeros((len(self._slots), SLOTS), np.uint64)
            merged[:, self._first : self._first + self._slots.shape[-1]] = self._slots[:, begin:end].sum(axis=1)
            statistics = [Statistics.from_slots(one, 0).told for one in merged]
            columns = {
                name: np.array([getattr(one, attribute) for one in statistics]) for name, attribute in _QUANTILES
            }
            # What a few values in a hundred thousand do shows in no quantile.
            self._known[begin, end] = {**columns, "mean": means_ns(merged)}
        return self._known[begin, end]


def told_histogram(series: Series, deviation: Deviation, values_of: Values) -> Told:
    """Tell a deviation of histograms by the quantile, or the mean, that shows it best."""
    columns = values_of.within(deviation.begin, deviation.end)
    found = {}
    for name, values in columns.items():
        others = _known(np.delete(values, deviation.node))
        if np.isfinite(values[deviation.node]) and others.size:
            found[name] = _told(series, deviation, name, "ns", float(values[deviation.node]), others)
    ratios = {name: one.value / one.median if one.median else np.inf for name, one in found.items()}
    best = max(ratios.values(), default=0)
    for name in _PREFERRED:
        if name in found and ratios[name] >= _ABOUT * best:
            return found[name]
    return _told(series, deviation, "", "ns", float("nan"), np.zeros(0))


def told_number(series: Series, deviation: Deviation, pairs: np.ndarray, unit: Unit) -> Told:
    """Tell a deviation of (above, below) ``(nodes, windows, 2)``; of a rate ``below`` is in ns."""
    merged = pairs[:, deviation.begin : deviation.end].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(merged[:, 1] > 0, merged[:, 0] / merged[:, 1], np.nan)
    others = _known(np.delete(values, deviation.node))
    return _told(series, deviation, "", unit, float(values[deviation.node]), others)


def _told(series: Series, deviation: Deviation, quantity: str, unit: Unit, value: float, others: np.ndarray) -> Told:
    low, median, high = np.percentile(others, (25, 50, 75)).tolist() if others.size else [float("nan")] * 3
    return Told(series, deviation, quantity, unit, value, median, low, high, others.size)


def _known(values: np.ndarray) -> np.ndarray:
    found: np.ndarray = values[np.isfinite(values)]
    return found
