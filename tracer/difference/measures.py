"""What of a side is compared: a few numbers for each of its blocks of time, as logarithms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from tracer.analysis.names import quoted
from tracer.compare.limits import LEAST_LOST
from tracer.compare.metrics import METRICS, Series
from tracer.compare.node import Node
from tracer.compare.quantiles import log_quantiles
from tracer.compare.shapes import LEAST_VALUES, means_ns
from tracer.compare.telling import Unit
from tracer.difference import limits

__all__ = ["Blocks", "Measure", "Quantity", "measured"]

#: ``rate``: values a second; ``time``: seconds a second that all of them took; "" of what is a share or rate itself.
Quantity = Literal["p50", "p99", "mean", "rate", "time", ""]
_QUANTILES: Mapping[Quantity, float] = {"p50": 0.50, "p99": 0.99}
#: Histograms of how long something had a CPU: added up they are time that nobody else had.
_RUNS = ("softirq.run", "hardirq.run")
#: What values of a histogram are, each counted in one series only.
_COUNTED: Mapping[str, str] = {
    "runqueue.wait": "waits for a CPU",
    "softirq.run": "softirqs",
    "hardirq.run": "interrupts",
    "workqueue.delay": "pieces of kernel work",
}
_NS = 1e9


class Measure(NamedTuple):
    """One number of a series."""

    series: Series
    quantity: Quantity

    @property
    def title(self) -> str:
        """How it is called in a sentence: ``NET_RX softirq delay p99``, ``NET_RX softirqs``."""
        if self.quantity not in ("rate", "time"):
            return f"{self.series.title} {self.quantity}".rstrip()
        counted = _COUNTED[self.series.metric]
        named = f"{quoted(self.series.part)} {counted}" if self.series.part else counted
        return named if self.quantity == "rate" else f"time in {named}"

    @property
    def is_load(self) -> bool:
        """Whether more of it is more to do, or less: nothing that takes longer."""
        return self.quantity in ("rate", "time") or METRICS[self.series.metric].role == "victim"

    @property
    def unit(self) -> Unit:
        """What its values are in."""
        if self.quantity == "":
            return "share" if METRICS[self.series.metric].kind == "share" else "per second"
        return {"rate": "per second", "time": "share"}.get(self.quantity, "ns")  # type: ignore[return-value]

    @property
    def least(self) -> float:
        """Return what is too little to matter: it is added before the logarithm is taken."""
        if self.quantity == "":
            return METRICS[self.series.metric].least
        return {"rate": limits.LEAST_RATE, "time": limits.LEAST_TIME}.get(self.quantity, 0.0)


class Blocks:
    """A side's windows, put together into a few blocks of about the same length, in the order of time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        # A window in which nothing was seen (a pause) is no window.
        self._seen = np.flatnonzero(node.seen_ns)
        number = min(limits.BLOCKS, len(self._seen))
        self._starts = np.linspace(0, len(self._seen), number, endpoint=False).astype(int)
        self.seconds = self._summed(node.seen_ns) / _NS
        self._metrics = {series.metric for series in node.series}

    def __len__(self) -> int:
        return len(self._starts)

    def histograms(self, series: Series) -> tuple[int, np.ndarray]:
        """Return the first slot in use and the histograms ``(blocks, slots in use)``."""
        one = self._node.histograms.get(series)
        return (one.first, self._summed(one.counts)) if one is not None else (0, np.zeros((len(self), 0)))

    def rate_and_mean(self, series: Series) -> tuple[float, float]:
        """Return how many values there are a second, and their mean in seconds; 0 of none."""
        first, slots = self.histograms(series)
        merged = slots.sum(axis=0)
        return float(merged.sum() / self.seconds.sum()), float(np.nan_to_num(means_ns(merged, first))) / _NS

    def numbers(self, series: Series) -> np.ndarray:
        """Return (above, below) ``(blocks, 2)``."""
        pairs = self._node.numbers.get(series)
        return np.zeros((len(self), 2)) if pairs is None else self._summed(pairs)

    def recorded(self, series: Series) -> bool:
        """Return whether this side would have the series, if anything of it had happened."""
        return series.metric in self._metrics

    def _summed(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values[self._seen].astype(np.float64), self._starts, axis=0)


def measured(before: Blocks, after: Blocks, series: Series) -> dict[Measure, tuple[np.ndarray, np.ndarray]]:
    """Return log2 of each measure of a series in each block of both sides, shapes ``(blocks,)``.

    NaN where there is too little. None of a series that costs next to nothing on either side.
    """
    if METRICS[series.metric].kind != "histogram":
        sides = [_ratios(one.numbers(series), series) for one in (before, after)]
        return {Measure(series, ""): (sides[0], sides[1])}
    spent = [rate * mean for rate, mean in (one.rate_and_mean(series) for one in (before, after))]
    if max(spent) < LEAST_LOST:
        return {}
    first, second = (_of_histograms(one, series) for one in (before, after))
    return {measure: (values, second[measure]) for measure, values in first.items()}


def _of_histograms(blocks: Blocks, series: Series) -> dict[Measure, np.ndarray]:
    first, slots = blocks.histograms(series)
    counts = slots.sum(axis=-1)
    means = means_ns(slots, first)
    found = {Measure(series, name): log_quantiles(slots, of, first) for name, of in _QUANTILES.items()}
    found[Measure(series, "mean")] = np.log2(np.where(counts >= LEAST_VALUES, means, np.nan))
    if series.metric in _COUNTED:
        found[Measure(series, "rate")] = np.log2(counts / blocks.seconds + limits.LEAST_RATE)
    if series.metric in _RUNS:
        spent = np.nan_to_num(means) * counts / _NS
        found[Measure(series, "time")] = np.log2(spent / blocks.seconds + limits.LEAST_TIME)
    return found


def _ratios(pairs: np.ndarray, series: Series) -> np.ndarray:
    metric = METRICS[series.metric]
    above, below = pairs[:, 0], pairs[:, 1] / (_NS if metric.kind == "rate" else 1)
    found: np.ndarray = np.log2(np.where(below > 0, above / np.where(below > 0, below, 1), np.nan) + metric.least)
    return found
