"""One series of all nodes: which of them deviate in it, by themselves or together, with the numbers to tell it by."""

from __future__ import annotations

import numpy as np

from tracer.compare import limits
from tracer.compare.alignment import Grid
from tracer.compare.deviation import Findings, of_histograms, of_numbers
from tracer.compare.kinds import with_kinds
from tracer.compare.metrics import METRICS, Series
from tracer.compare.risen import with_all
from tracer.compare.telling import Told, Unit, Values, told_histogram, told_number
from tracer.units import SECOND

__all__ = ["findings_of", "judge", "judge_histograms"]


def judge(grid: Grid, series: Series) -> tuple[Findings, list[Told]]:
    """Return what deviates in a series, and those deviations that show in its numbers, with these."""
    metric = METRICS[series.metric]
    if metric.kind == "histogram":
        first, slots = grid.histograms(series)
        return judge_histograms(series, slots, grid.length_ns / max(node.every for node in grid.nodes), first)
    pairs = grid.numbers(series)
    if metric.kind == "rate":
        pairs[..., 1] /= SECOND
    findings = of_numbers(pairs, metric.least)
    unit: Unit = "share" if metric.kind == "share" else "per second"
    told = [told_number(series, one, pairs, unit) for one in (*findings.deviations, *findings.each)]
    # Added up over all its windows it must still show.
    return findings, [one for one in told if one.value + metric.least >= limits.EFFECT * (one.median + metric.least)]


def judge_histograms(series: Series, slots: np.ndarray, length_ns: float, first: int) -> tuple[Findings, list[Told]]:
    """Do the same with histograms, as in ``findings_of``."""
    findings, values = findings_of(slots, length_ns, first), Values(slots, first)
    told = [told_histogram(series, one, values) for one in (*findings.deviations, *findings.each)]
    return findings, [one for one in told if one.value > one.median]


def findings_of(slots: np.ndarray, length_ns: float, first: int = 0) -> Findings:
    """Return what deviates among histograms ``(nodes, windows, n)``: single nodes, many or all at once, two kinds.

    ``first`` is their first slot; of each window ``length_ns`` is seen.
    """
    findings = with_all(of_histograms(slots, length_ns, first), slots, first, length_ns)
    return with_kinds(findings, slots, first, length_ns)
