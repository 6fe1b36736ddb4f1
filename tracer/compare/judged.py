"""Deviations of nodes from each other in one series, and which of them are beyond the noise."""

from __future__ import annotations

import numpy as np

from tracer.compare import limits
from tracer.compare.robust import mad, medians, scatter
from tracer.compare.scan import CLIP, LEAST_WINDOWS, Stretch, baseline_of, extended, noise, scan, step_noise

__all__ = ["Judged", "reference"]

# A window of the baseline counts by at most so many sigmas, which costs so much of the variance.
_HUBER, _HUBER_COST = 2.0, 1.1
# Some of the baseline always counts; and all of it, where a node stands out among the others by so many sigmas.
_LEAST_SHARE, _STANDS_OUT = 0.1, 3.0
_NOTHING = 1e-30
# What lasts is beyond so many sigmas in limits.LASTING of all windows: a few bursts would lift the mean as much.
_BEYOND = 2.0
# Of windows without a fault, at most so many are beyond that.
_BY_CHANCE = 0.2


class Judged:
    """Deviations of nodes from each other, ``(nodes, windows)``, and what is beyond the noise in them.

    ``errors`` are their standard errors, as far as known, of the same shape. ``habit`` ``(nodes,)`` is by how much each
    node always deviates.
    """

    def __init__(self, deviations: np.ndarray, needed: float, floor: float, errors: np.ndarray | float = 0.0) -> None:
        self._deviations = deviations
        self._needed = needed
        self._floor = floor
        self._few = len(deviations) < limits.FEW_NODES
        self._baseline = baseline_of(deviations.shape[1])
        self._errors = errors
        usual = medians(deviations[:, : self._baseline], 1) if self._baseline else np.zeros(len(deviations))
        # Two nodes deviate from each other by the same: a few tell nothing of their scatter.
        sigma = step_noise(deviations, floor) if self._few else noise(deviations - usual[:, None], floor)
        self._sigma = np.fmax(np.broadcast_to(sigma, deviations.shape), errors)
        self.habit, self._unsure = self._habits(usual)
        self._change = deviations - self.habit[:, None]

    def _habits(self, usual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much each node always deviates, and how unsure that is, both ``(nodes,)``.

        The mean of the baseline's windows, weighted by how sure they are, of which none counts by more than a burst may
        (Huber's estimate, one step from the median). As far as nodes differ by more than chance makes them (an
        empirical Bayes estimate), and wholly where one stands out among the others.
        """
        if not self._baseline:
            return usual, np.zeros(len(usual))
        sigma = self._sigma[:, : self._baseline]
        away = self._deviations[:, : self._baseline] - usual[:, None]
        known = ~np.isnan(away)
        weights = np.where(known, sigma, np.inf) ** -2.0
        certainty = np.maximum(weights.sum(axis=1), _NOTHING)
        bounded = np.where(known, np.clip(away, -_HUBER * sigma, _HUBER * sigma), 0)
        habit = np.nan_to_num(usual) + (weights * bounded).sum(axis=1) / certainty
        chance = _HUBER_COST / certainty
        if self._few:
            return habit, np.sqrt(chance)
        spread = np.maximum(float(scatter(habit)) ** 2, chance)
        share = np.maximum((spread - chance) / spread, _LEAST_SHARE)
        share = np.where(np.abs(habit) > _STANDS_OUT * np.sqrt(spread), 1.0, share)
        return habit * share, np.sqrt(share * chance)

    def found(self) -> list[tuple[int, float, int, int, bool]]:
        """Return (node, score, begin, end, lasting) of those that deviate, scores as multiples of what is needed."""
        found = {one[0]: one for one in self._lasting()}
        if self._baseline:
            stretch = scan(self._change, self._sigma, self._baseline, self._unsure)
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
        """Return by how much a node deviates in a stretch of windows."""
        return float(np.nanmean((self._deviations if lasting else self._change)[node, begin:end]))

    def common(self, values: np.ndarray) -> dict[int, float]:
        """Return the nodes that changed together and by how much, when they are too many to be single nodes' faults.

        ``values`` are what the deviations were made of. Where most change, the others seem to have become faster.
        """
        if self._few or not self._baseline:
            return {}
        sigma = np.fmax(step_noise(self._change, self._floor), self._errors)
        slower, faster = (scan(one, sigma, self._baseline, self._unsure) for one in (self._change, -self._change))
        step = np.log2(limits.EFFECT)
        deviating = [
            place
            for stretch, sign in ((slower, 1), (faster, -1))
            for place in np.flatnonzero(stretch.score > self._needed).tolist()
            if sign * self.size(place, int(stretch.begin[place]), int(stretch.end[place]), False) >= step
        ]
        if len(set(deviating)) <= limits.COMMON_SHARE * len(values):
            return {}
        begins = np.where(slower.score > faster.score, slower.begin, faster.begin)[deviating]
        own = medians(values[:, : self._baseline], 1)
        changes = medians(values[:, int(np.median(begins)) :], 1) - own
        risen = np.flatnonzero(changes >= step).tolist()
        told = limits.COMMON_SHARE * len(values) < len(risen) < len(values)
        return {node: float(changes[node]) for node in risen} if told else {}

    def _lasting(self) -> list[tuple[int, float, int, int, bool]]:
        """Nodes that deviate all the time, or again and again, from the start on or from early on."""
        # As in the scan, one window is at most so many sigmas.
        bounded = np.clip(self._deviations, -CLIP * self._sigma, CLIP * self._sigma)
        known = ~np.isnan(bounded)
        levels = np.where(known, bounded, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        middle = float(medians(levels))
        # Of a few nodes the scatter is unknown: the effect asked of them is greater.
        sigma = medians(self._sigma, 1) if self._few else max(float(scatter(levels - middle)), self._floor)
        needed = limits.LEVEL_SCORE * self._needed / limits.BULK_SCORE
        scores = (levels - (0 if self._few else middle)) / sigma / needed
        beyond = self._deviations > _BEYOND * self._sigma
        windows = self._deviations.shape[1]
        often = np.ones(len(levels), bool)
        for part in (slice(0, self._baseline or windows), slice(0, windows)):
            often &= beyond[:, part].sum(axis=1) >= np.maximum(limits.LASTING * known[:, part].sum(axis=1), 1)
        return [
            (node, float(scores[node]), _onset(beyond[node], known[node]), windows, True)
            for node in np.flatnonzero((scores > 1) & often).tolist()
        ]

    def _usual(self, scores: np.ndarray) -> float:
        """Return how much the nodes' scores reach without a fault: their windows may be noisier than taken for."""
        if self._few:
            return 0.0
        known = np.where(np.isfinite(scores), scores, 0.0)
        return float(medians(known) + limits.PEER_SIGMAS * mad(known))


def _onset(beyond: np.ndarray, known: np.ndarray) -> int:
    """Return the window from which on all known ones are beyond, as far as it can be told; 0 from the start on."""
    places = np.flatnonzero(known)
    hits = beyond[places]
    for place in range(LEAST_WINDOWS, len(places) - LEAST_WINDOWS):
        if hits[place : place + LEAST_WINDOWS + 1].all():
            return int(places[place]) if hits[:place].mean() <= _BY_CHANCE else 0
    return 0


def reference(values: np.ndarray) -> np.ndarray:
    """Return what the others do: the median of all nodes, or of all others where one node would move it."""
    if len(values) >= limits.FEW_NODES:
        return medians(values)
    return np.stack([medians(np.delete(values, place, axis=0)) for place in range(len(values))])
