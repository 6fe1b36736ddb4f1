"""One series of many nodes: which of them deviate, how, how much and since which window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracer.compare import limits
from tracer.compare.robust import mad, medians, scatter
from tracer.compare.scan import CLIP, LEAST_WINDOWS, Stretch, baseline_of, extended, noise, scan, step_noise
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
    apart = middles - _reference(middles)
    bulk = _Judged(apart, limits.BULK_SCORE, limits.BULK_FLOOR, errors)
    common = bulk.common(middles)
    places, nodes = np.flatnonzero(known), int(known.sum())
    if common:
        return Findings((), common, nodes)
    functions = cumulative(slots)
    counts = np.nan_to_num(medians(np.where(slots.any(axis=-1), slots.sum(axis=-1), np.nan)))
    above = tails(functions, _reference(functions), counts, apart)
    tail = _Judged(above - _reference(above), limits.TAIL_SCORE, limits.TAIL_FLOOR)
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
    judged = _Judged(logs - _reference(logs), limits.BULK_SCORE, limits.BULK_FLOOR)
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


class _Judged:
    """Deviations of nodes from each other, ``(nodes, windows)`` in octaves, and what is beyond the noise in them.

    ``errors`` are their standard errors, as far as known, of the same shape.
    """

    def __init__(self, deviations: np.ndarray, needed: float, floor: float, errors: np.ndarray | float = 0.0) -> None:
        self._deviations = deviations
        self._needed = needed
        self._floor = floor
        self._few = len(deviations) < limits.FEW_NODES
        self._baseline = baseline_of(deviations.shape[1])
        own = medians(deviations[:, : self._baseline], 1) if self._baseline else np.zeros(len(deviations))
        self._change = deviations - own[:, None]
        # Two nodes deviate from each other by the same: a few tell nothing of their scatter.
        sigma = step_noise(self._change, floor) if self._few else noise(self._change, floor)
        self._errors = errors
        self._sigma = np.fmax(np.broadcast_to(sigma, deviations.shape), errors)

    def found(self) -> list[tuple[int, float, int, int, bool]]:
        """Return (node, score, begin, end, lasting) of those that deviate, scores as multiples of what is needed."""
        found = {one[0]: one for one in self._lasting()}
        if self._baseline:
            stretch = scan(self._change, self._sigma, self._baseline)
            needed = max(self._needed, self._usual(stretch.score))
            for node in np.flatnonzero(stretch.score > needed).tolist():
                score = float(stretch.score[node] / needed)
                if node not in found or found[node][1] < score:
                    found[node] = (node, score, *self._whole(node, stretch), False)
        return list(found.values())

    def _whole(self, node: int, stretch: Stretch) -> tuple[int, int]:
        begin, end = int(stretch.begin[node]), int(stretch.end[node])
        return extended(self._change[node], self._sigma[node], begin, end, self._baseline)

    def size(self, node: int, begin: int, end: int, lasting: bool) -> float:
        """Return by how many octaves a node deviates in a stretch of windows."""
        return float(np.nanmean((self._deviations if lasting else self._change)[node, begin:end]))

    def common(self, values: np.ndarray) -> int:
        """Return how many nodes changed together, when they are too many to be single nodes' faults; else 0.

        ``values`` are what the deviations were made of. Where most change, the others seem to have become faster.
        """
        if self._few or not self._baseline:
            return 0
        sigma = np.fmax(step_noise(self._change, self._floor), self._errors)
        slower, faster = scan(self._change, sigma, self._baseline), scan(-self._change, sigma, self._baseline)
        step = np.log2(limits.EFFECT)
        deviating = [
            place
            for stretch, sign in ((slower, 1), (faster, -1))
            for place in np.flatnonzero(stretch.score > self._needed).tolist()
            if sign * self.size(place, int(stretch.begin[place]), int(stretch.end[place]), False) >= step
        ]
        if len(set(deviating)) <= limits.COMMON_SHARE * len(values):
            return 0
        begins = np.where(slower.score > faster.score, slower.begin, faster.begin)[deviating]
        own = medians(values[:, : self._baseline], 1)
        risen = int((medians(values[:, int(np.median(begins)) :], 1) - own >= step).sum())
        return risen if limits.COMMON_SHARE * len(values) < risen < len(values) else 0

    def _lasting(self) -> list[tuple[int, float, int, int, bool]]:
        """Nodes that deviate all the time, or again and again from the start on."""
        # As in the scan, one window is at most so many sigmas.
        bounded = np.clip(self._deviations, -CLIP * self._sigma, CLIP * self._sigma)
        known = ~np.isnan(bounded)
        levels = np.where(known, bounded, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        middle = float(medians(levels))
        # Of a few nodes the scatter is unknown: the effect asked of them is greater.
        sigma = (
            np.log2(limits.EFFECT_OF_FEW) / limits.LEVEL_SCORE
            if self._few
            else max(float(scatter(levels - middle)), self._floor)
        )
        needed = limits.LEVEL_SCORE * self._needed / limits.BULK_SCORE
        scores = (levels - (0 if self._few else middle)) / sigma / needed
        beyond = (self._deviations > np.log2(limits.EFFECT)).sum(axis=1) >= limits.LASTING * known.sum(axis=1)
        windows = self._deviations.shape[1]
        return [
            (node, float(scores[node]), 0, windows, True) for node in np.flatnonzero((scores > 1) & beyond).tolist()
        ]

    def _usual(self, scores: np.ndarray) -> float:
        """Return how much the nodes' scores reach without a fault: their windows may be noisier than taken for."""
        if self._few:
            return 0.0
        known = np.where(np.isfinite(scores), scores, 0.0)
        return float(medians(known) + limits.PEER_SIGMAS * mad(known))


def _reference(values: np.ndarray) -> np.ndarray:
    """Return what the others do: the median of all nodes, or of all others where one node would move it."""
    if len(values) >= limits.FEW_NODES:
        return medians(values)
    return np.stack([medians(np.delete(values, place, axis=0)) for place in range(len(values))])


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
