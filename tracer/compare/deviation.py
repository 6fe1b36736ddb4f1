"""One series of many nodes: which of them deviate, how, how much and since which window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracer.compare import limits
from tracer.compare.judged import Judged, reference
from tracer.compare.robust import medians
from tracer.compare.scan import LEAST_WINDOWS
from tracer.compare.shapes import centroids, cumulative, means_ns, tails

__all__ = ["Deviation", "Findings", "of_histograms", "of_numbers"]

# What is slower as a whole has a heavier tail as well: a tail is told where it says much more.
_CLEARER = 1.5
# What is seen now and then only has no noise that could be told.
_KNOWN = 0.5
Form = Literal["bulk", "tail"]


@dataclass(frozen=True)
class Deviation:
    """What one node does in one series.

    Attributes:
        node: its place among those compared.
        form: whether all values are greater, or only the worst of them.
        score: how sure, as a multiple of what is needed.
        ratio: against what the others do meanwhile; of a histogram its mean or middle, whichever shows more.
        begin, end: windows in which it does.
        lasting: from the start of the recording on: there is no baseline without it.
        lost: seconds per second that it costs; NaN where that is no time.
    """

    node: int
    form: Form
    score: float
    ratio: float
    begin: int
    end: int
    lasting: bool
    lost: float = float("nan")


@dataclass(frozen=True)
class Findings:
    """All that deviates in one series. ``common`` of ``nodes`` changed together: then no single one is blamed."""

    deviations: tuple[Deviation, ...]
    common: int
    nodes: int


def of_histograms(slots: np.ndarray, length_ns: float, first: int = 0) -> Findings:
    """Compare histograms ``(nodes, windows, n)``, whose first slot is ``first``, of which ``length_ns`` is seen."""
    middles, errors = centroids(slots, first)
    known = _enough(middles)
    if known.sum() < 2:
        return Findings((), 0, int(known.sum()))
    slots, middles, errors = slots[known], middles[known], errors[known]
    apart = middles - reference(middles)
    bulk = Judged(apart, limits.BULK_SCORE, limits.BULK_FLOOR, errors)
    common = bulk.common(middles)
    places, nodes = np.flatnonzero(known), int(known.sum())
    if common:
        return Findings((), common, nodes)
    functions = cumulative(slots)
    counts = np.nan_to_num(medians(np.where(slots.any(axis=-1), slots.sum(axis=-1), np.nan)))
    above = tails(functions, reference(functions), counts, apart)
    tail = Judged(above - reference(above), limits.TAIL_SCORE, limits.TAIL_FLOOR)
    found: dict[int, Deviation] = {}
    for form, judged in (("bulk", bulk), ("tail", tail)):
        for node, score, begin, end, lasting in judged.found():
            ratio, lost = _cost(slots[:, begin:end], first, node, length_ns)
            if form == "bulk":
                ratio = max(ratio, 2.0 ** judged.size(node, begin, end, lasting))
            needed = limits.EFFECT if nodes >= limits.FEW_NODES else limits.EFFECT_OF_FEW
            clearer = node not in found or score > _CLEARER * found[node].score
            if ratio < needed or lost < limits.LEAST_LOST or not clearer:
                continue
            found[node] = Deviation(int(places[node]), form, score, ratio, begin, end, lasting, lost)  # type: ignore[arg-type]
    return Findings(tuple(found.values()), 0, nodes)


def of_numbers(pairs: np.ndarray, least: float) -> Findings:
    """Compare (above, below), shape ``(nodes, windows, 2)``; ``least`` of their ratio is too small to matter."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(pairs[..., 1] > 0, pairs[..., 0] / pairs[..., 1], np.nan)
    known = _enough(values)
    if known.sum() < 2:
        return Findings((), 0, int(known.sum()))
    logs = np.log2(values[known] + least)
    judged = Judged(logs - reference(logs), limits.BULK_SCORE, limits.BULK_FLOOR)
    places, nodes = np.flatnonzero(known), int(known.sum())
    if common := judged.common(logs):
        return Findings((), common, nodes)
    needed = limits.EFFECT if nodes >= limits.FEW_NODES else limits.EFFECT_OF_FEW
    found = []
    for node, score, begin, end, lasting in judged.found():
        ratio = 2.0 ** judged.size(node, begin, end, lasting)
        if ratio >= needed:
            found.append(Deviation(int(places[node]), "bulk", score, ratio, begin, end, lasting))
    return Findings(tuple(found), 0, nodes)


def _cost(slots: np.ndarray, first: int, node: int, length_ns: float) -> tuple[float, float]:
    """Return the ratio of a node's mean to the others' in these windows, and the time per second that it costs."""
    merged = slots.sum(axis=1)
    means = means_ns(merged, first)
    usual = float(medians(np.delete(means, node)))
    seconds = slots.shape[1] * length_ns / 1e9
    lost = float(merged[node].sum()) / seconds * (means[node] - usual) / 1e9
    return float(means[node] / usual) if usual else float("inf"), lost


def _enough(values: np.ndarray) -> np.ndarray:
    """Return which nodes are known in at least four windows, and in half of those in which any is."""
    known = ~np.isnan(values)
    least = max(LEAST_WINDOWS, _KNOWN * known.any(axis=0).sum())
    found: np.ndarray = known.sum(axis=1) >= least
    return found
