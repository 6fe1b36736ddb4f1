"""What of a side is compared: a few numbers for each of its blocks of time, as logarithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from tracer.units import SECOND

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
    """A side's windows, put together into a few blocks of about the same length, in the order of time.

    A side is one recording or several; each has blocks of its own, ``most`` at most.
    """

    def __init__(self, nodes: Sequence[Node], most: int = limits.BLOCKS) -> None:
        self._parts = [_Part(node, most) for node in nodes]
        self.numbers_of_blocks = tuple(len(part) for part in self._parts)
        self.seconds = np.concatenate([part.summed(part.node.seen_ns) for part in self._parts]) / SECOND
        self.series = set().union(*(node.series for node in nodes))
        self._nodes = nodes

    def __len__(self) -> int:
        return sum(self.numbers_of_blocks)

    def windows(self, first: int, last: int) -> tuple[int, int]:
        """Return from which window of a single recording to which the blocks from ``first`` to before ``last`` are."""
        (part,) = self._parts
        return part.windows(first, last)

    def histograms(self, series: Series) -> tuple[int, np.ndarray]:
        """Return the first slot in use and the histograms ``(blocks, slots in use)``."""
        used = [(part, part.node.histograms[series]) for part in self._parts if series in part.node.histograms]
        first = min((one.first for _, one in used), default=0)
        slots = np.zeros((len(self), max((one.first + one.counts.shape[1] for _, one in used), default=0) - first))
        for part, rows in zip(self._parts, np.split(slots, np.cumsum(self.numbers_of_blocks)[:-1]), strict=True):
            if one := part.node.histograms.get(series):
                begin = one.first - first
                rows[:, begin : begin + one.counts.shape[1]] = part.summed(one.counts)
        return first, slots

    def rate_and_mean(self, series: Series) -> tuple[float, float]:
        """Return how many values there are a second, and their mean in seconds; 0 of none."""
        first, slots = self.histograms(series)
        merged = slots.sum(axis=0)
        return float(merged.sum() / (self.seconds.sum() or 1.0)), float(np.nan_to_num(means_ns(merged, first))) / SECOND

    def numbers(self, series: Series) -> np.ndarray:
        """Return (above, below) ``(blocks, 2)``."""
        pairs = [(part, part.node.numbers.get(series)) for part in self._parts]
        return np.concatenate(
            [np.zeros((len(part), 2)) if values is None else part.summed(values) for part, values in pairs]
        )

    def recorded(self, series: Series) -> bool:
        """Return whether this side would have the series, if anything of it had happened."""
        metric = METRICS[series.metric]
        # A histogram of which nothing was counted has no series.
        return all(
            any(one.metric == series.metric for one in node.series)
            or (metric.kind == "histogram" and metric.table[0] in node.told)
            for node in self._nodes
        )


class _Part:
    """The blocks of one recording."""

    def __init__(self, node: Node, most: int) -> None:
        self.node = node
        # A window in which nothing was seen (a pause) is no window.
        self._seen = np.flatnonzero(node.seen_ns)
        self._starts = np.linspace(0, len(self._seen), min(most, len(self._seen)), endpoint=False).astype(int)

    def __len__(self) -> int:
        return len(self._starts)

    def windows(self, first: int, last: int) -> tuple[int, int]:
        ends = [*self._starts, len(self._seen)]
        return int(self._seen[ends[first]]), int(self._seen[ends[last] - 1]) + 1

    def summed(self, values: np.ndarray) -> np.ndarray:
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
        spent = np.nan_to_num(means) * counts / SECOND
        found[Measure(series, "time")] = np.log2(spent / blocks.seconds + limits.LEAST_TIME)
    return found


def _ratios(pairs: np.ndarray, series: Series) -> np.ndarray:
    metric = METRICS[series.metric]
    above, below = pairs[:, 0], pairs[:, 1] / (SECOND if metric.kind == "rate" else 1)
    found: np.ndarray = np.log2(np.where(below > 0, above / np.where(below > 0, below, 1), np.nan) + metric.least)
    return found
