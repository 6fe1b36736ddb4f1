"""What cohorts are compared in: of each series the middle and the tail, or the ratio, one number per node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tracer.cohorts.levels import TAIL, middles, ratios, tails
from tracer.compare import limits
from tracer.compare.alignment import Grid
from tracer.compare.metrics import METRICS, Metric, Series
from tracer.compare.shapes import centroids, means_ns
from tracer.compare.telling import Unit

__all__ = ["Quantity", "quantities"]

_NS = 1e9


@dataclass(frozen=True)
class Quantity:
    """One number per node.

    Attributes:
        series: of which.
        name: ``middle`` or ``p99`` of a histogram; "" of a share or rate.
        unit: of ``levels``.
        octaves: the numbers as ``levels.py`` makes them, shape ``(nodes,)``; NaN of a node that has none.
        levels: the numbers in ``unit``, likewise.
        weight: of a change by as much as a level itself, so many times what is told at all.
    """

    series: Series
    name: str
    unit: Unit
    octaves: np.ndarray = field(repr=False)
    levels: np.ndarray = field(repr=False)
    weight: float

    @property
    def title(self) -> str:
        """How it is called in a sentence: ``NET_RX softirq delay p99``."""
        return f"{self.series.title} {self.name}".rstrip()

    @property
    def metric(self) -> Metric:
        """The metric of the series."""
        return METRICS[self.series.metric]

    @property
    def judges(self) -> bool:
        """Whether more of it is worse: of idle time nobody can say."""
        return self.metric.role != "victim"

    @property
    def is_node_time(self) -> bool:
        """Whether it is a share of the node's own time, which is lost to jobs."""
        return self.unit == "share" and self.judges and "polls" not in self.metric.below


def quantities(grid: Grid) -> Iterator[Quantity]:
    """Yield what at least so many nodes were measured in as a comparison of two cohorts takes."""
    measured = Counter(series for node in grid.nodes for series in node.series)
    seconds = grid.windows * grid.length_ns / _NS / max((node.every for node in grid.nodes), default=1)
    cpus = max(1.0, float(np.median([node.source.cpus for node in grid.nodes])))
    for series, nodes in sorted(measured.items()):
        if nodes < 2 * limits.FEWEST_IN_COHORT:
            continue
        metric = METRICS[series.metric]
        if metric.kind == "histogram":
            yield from _of_histograms(series, *grid.histograms(series), seconds)
        else:
            yield _of_numbers(series, grid.numbers(series), cpus)


def _of_histograms(series: Series, first: int, slots: np.ndarray, seconds: float) -> Iterator[Quantity]:
    merged = slots.sum(axis=1, dtype=np.float64)
    middle, tail = 2.0 ** centroids(merged, first)[0], tails(slots, first)
    # Lost per second, over all CPUs, when all of the values, or the last percent of them, take twice as long.
    per_second = _usual(merged.sum(axis=1)) / max(seconds, 1e-9) / _NS / limits.LEAST_LOST
    spent = per_second * _usual(means_ns(merged, first) / middle)
    yield Quantity(series, "middle", "ns", middles(slots, first), middle, spent)
    yield Quantity(series, f"p{100 * TAIL:g}", "ns", tail, 2.0**tail, per_second * (1 - TAIL))


def _of_numbers(series: Series, pairs: np.ndarray, cpus: float) -> Quantity:
    metric = METRICS[series.metric]
    if metric.kind == "rate":
        pairs[..., 1] /= _NS
        octaves, negligible = ratios(pairs, metric.least), metric.least
    else:
        octaves, negligible = ratios(pairs, limits.LEAST_LOST), limits.LEAST_LOST
    total = pairs.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        levels = np.where(total[:, 1] > 0, total[:, 0] / total[:, 1], np.nan)
    times = cpus if metric.below and metric.kind == "share" and "polls" not in metric.below else 1.0
    return Quantity(
        series, "", "share" if metric.kind == "share" else "per second", octaves, levels, times / negligible
    )


def _usual(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else 0.0
