"""One series of many nodes: which of them deviate, how, how much and since which window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracer.compare import limits
from tracer.compare.judged import Judged, reference
from tracer.compare.robust import medians
from tracer.compare.scan import LEAST_WINDOWS
from tracer.compare.shapes import beyond, blurred, centroids, means_ns

__all__ = ["Deviation", "Findings", "of_histograms", "of_numbers"]

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
        lasting: from the start of the recording on, or so early that there is no baseline without it.
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
    """All that deviates in one series of ``nodes``.

    ``common``: those that changed together, each with its ratio; then no single one is blamed.
    """

    deviations: tuple[Deviation, ...]
    common: Mapping[int, float]
    nodes: int


def of_histograms(slots: np.ndarray, length_ns: float, first: int = 0) -> Findings:
    """Compare histograms ``(nodes, windows, n)``, whose first slot is ``first``, of which ``length_ns`` is seen."""
    middles, errors = centroids(slots, first)
    known = _enough(middles)
    if known.sum() < 2:
        return Findings((), {}, int(known.sum()))
    slots, middles, errors = slots[known], middles[known], errors[known]
    places, nodes = np.flatnonzero(known), int(known.sum())
    needed, floor = _asked(nodes)
    bulk = Judged(middles - reference(middles), limits.BULK_SCORE, floor, errors)
    if common := bulk.common(middles):
        return Findings((), _ratios(common, places), nodes)
    functions, counts = blurred(slots), slots.sum(axis=-1, dtype=np.float64)
    levels = beyond(functions, reference(functions), counts, bulk.habit, floor)
    judged = [bulk, *(Judged(more, limits.TAIL_SCORE, limits.TAIL_FLOOR, least) for more, least in levels)]
    found: dict[int, Deviation] = {}
    for one in judged:
        for node, score, begin, end, lasting in one.found():
            if node in found and score <= found[node].score:
                continue
            mean, spent = _spent(slots[:, begin:end], first, node, length_ns)
            middle = 2.0 ** bulk.size(node, begin, end, lasting)
            form: Form = "bulk" if middle >= needed else "tail"
            # Of what is scattered widely the mean tells little: a few values make it.
            ratio = max(mean, middle)
            lost = (ratio - 1) * spent
            if ratio >= needed and lost >= limits.LEAST_LOST:
                found[node] = Deviation(int(places[node]), form, score, ratio, begin, end, lasting, lost)
    if nodes >= limits.FEW_NODES and len(found) > limits.COMMON_SHARE * nodes:
        return Findings((), {one.node: one.ratio for one in found.values()}, nodes)
    return Findings(tuple(found.values()), {}, nodes)


def of_numbers(pairs: np.ndarray, least: float) -> Findings:
    """Compare (above, below), shape ``(nodes, windows, 2)``; ``least`` of their ratio is too small to matter."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(pairs[..., 1] > 0, pairs[..., 0] / pairs[..., 1], np.nan)
    known = _enough(values)
    if known.sum() < 2:
        return Findings((), {}, int(known.sum()))
    logs = np.log2(values[known] + least)
    places, nodes = np.flatnonzero(known), int(known.sum())
    needed, floor = _asked(nodes)
    judged = Judged(logs - reference(logs), limits.BULK_SCORE, floor)
    if common := judged.common(logs):
        return Findings((), _ratios(common, places), nodes)
    found = []
    for node, score, begin, end, lasting in judged.found():
        ratio = 2.0 ** judged.size(node, begin, end, lasting)
        if ratio >= needed:
            found.append(Deviation(int(places[node]), "bulk", score, ratio, begin, end, lasting))
    return Findings(tuple(found), {}, nodes)


def _ratios(changes: Mapping[int, float], places: np.ndarray) -> dict[int, float]:
    """Return the nodes among all that are compared, of changes as logarithms."""
    return {int(places[node]): 2.0**change for node, change in changes.items()}


def _asked(nodes: int) -> tuple[float, float]:
    """Return the effect that is asked for among so many nodes, and the least sigma."""
    if nodes < limits.FEW_NODES:
        return limits.EFFECT_OF_FEW, limits.BULK_FLOOR_OF_FEW
    return limits.EFFECT, limits.BULK_FLOOR


def _spent(slots: np.ndarray, first: int, node: int, length_ns: float) -> tuple[float, float]:
    """Return the ratio of a node's mean to the others' in these windows.

    And the seconds per second that it would take if its values were as long as theirs.
    """
    merged = slots.sum(axis=1)
    means = means_ns(merged, first)
    usual = float(medians(np.delete(means, node)))
    seconds = slots.shape[1] * length_ns / 1e9
    ratio = float(means[node] / usual) if usual else float("inf")
    return ratio, float(merged[node].sum()) / seconds * usual / 1e9


def _enough(values: np.ndarray) -> np.ndarray:
    """Return which nodes are known in at least four windows, and in half of those in which any is."""
    known = ~np.isnan(values)
    least = max(LEAST_WINDOWS, _KNOWN * known.any(axis=0).sum())
    found: np.ndarray = known.sum(axis=1) >= least
    return found
