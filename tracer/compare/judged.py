"""Deviations of nodes from each other in one series, and which of them are beyond the noise."""

from __future__ import annotations

import numpy as np

from tracer.compare import limits
from tracer.compare.atonce import Together, at_once
from tracer.compare.groups import student, two_kinds
from tracer.compare.onset import Onset, onset_of
from tracer.compare.robust import mad, medians, scatter
from tracer.compare.scan import CLIP, Stretch, baseline_of, extended, noise, persists, scan, step_noise

__all__ = ["Judged", "reference"]

# A window of the baseline counts by at most so many sigmas, which costs so much of the variance.
_HUBER, _HUBER_COST = 2.0, 1.1
# Some of the baseline always counts; and all of it, where a node stands out among the others by so many sigmas.
_LEAST_SHARE, _STANDS_OUT = 0.1, 3.0
_NOTHING = 1e-30
# What lasts is beyond so many sigmas in limits.LASTING of all windows: a few bursts would lift the mean as much.
_BEYOND = 2.0


class Judged:
    """Deviations of nodes from each other, ``(nodes, windows)``, and what is beyond the noise in them.

    ``errors`` are their standard errors, as far as known, of the same shape. ``habit`` ``(nodes,)`` is by how much each
    node always deviates. ``phases`` ``(windows,)`` are the job's.
    """

    def __init__(
        self,
        deviations: np.ndarray,
        asked: limits.Asked,
        floor: float,
        errors: np.ndarray | float = 0.0,
        phases: np.ndarray | int = 0,
    ) -> None:
        self._deviations = deviations
        self._asked = asked
        self._floor = floor
        self._phases = phases
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
        for one in self.changed():
            if one[0] not in found or found[one[0]][1] < one[1]:
                found[one[0]] = one
        return list(found.values())

    def changed(self, by_steps: bool = False) -> list[tuple[int, float, int, int, bool]]:
        """Return the same of those only that deviate from their own baselines.

        ``by_steps``: beyond what a node scatters from window to window, where so many deviate that their scatter is no
        noise.
        """
        if not self._baseline:
            return []
        asked, sigma = self._asked, self._steps() if by_steps else self._sigma
        stretch = scan(self._change, sigma, self._baseline, self._unsure, asked.clip, asked.alike, self._phases)
        needed = max(asked.stretch, self._usual(stretch.score))
        return [
            (node, float(stretch.score[node] / needed), *self._whole(node, stretch), False)
            for node in np.flatnonzero(stretch.score > needed).tolist()
            if by_steps or self._among(node, int(stretch.begin[node]), int(stretch.end[node])) >= limits.AMONG
        ]

    def _among(self, node: int, begin: int, end: int) -> float:
        """Return how many of their sigmas a node is beyond what nodes are off by on average in the same windows.

        A phase that the baseline did not have shows habits that nobody could know: all windows of a node are off by
        the same, and so are its twins'.
        """
        if self._few:
            return np.inf
        part, clip = slice(begin, end), self._asked.clip
        bounded = np.clip(self._change[:, part] / self._sigma[:, part], -clip, clip)
        known = ~np.isnan(bounded)
        means = np.where(known, bounded, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        away = means - float(medians(means))
        return float(away[node] / max(float(scatter(away)), _NOTHING))

    def _whole(self, node: int, stretch: Stretch) -> tuple[int, int]:
        begin, end = int(stretch.begin[node]), int(stretch.end[node])
        return extended(self._change[node], self._sigma[node], begin, end, self._baseline)

    def size(self, node: int, begin: int, end: int, lasting: bool) -> float:
        """Return by how much a node deviates in a stretch of windows."""
        return float(np.nanmean((self._deviations if lasting else self._change)[node, begin:end]))

    def onset(self, node: int, begin: int, end: int, lasting: bool) -> Onset:
        """Return since when a node deviates as it does in a stretch of windows."""
        own = (self._deviations if lasting else self._change)[node, begin:end]
        size = float(medians(own[own > _BEYOND * self._sigma[node, begin:end]]))
        levels = medians(self._deviations, 1)
        spread = max(float(scatter(levels - medians(levels))), self._floor)
        return onset_of(self._deviations[node, :end], self._sigma[node, :end], spread, size)

    def together(self, values: np.ndarray) -> Together:
        """Return which nodes changed together: about the same time, and too many to be single nodes' faults.

        ``values`` are what the deviations were made of. Where most change, the others seem to have become faster.
        """
        if self._few or not self._baseline:
            return Together()
        sigma = self._steps()
        slower, faster = (scan(one, sigma, self._baseline, self._unsure) for one in (self._change, -self._change))
        step = np.log2(limits.EFFECT)
        begins: list[dict[int, int]] = [
            {
                place: int(stretch.begin[place])
                for place in np.flatnonzero(stretch.score > limits.COMMON_SCORE).tolist()
                if sign * self.size(place, int(stretch.begin[place]), int(stretch.end[place]), False) >= step
            }
            for stretch, sign in ((slower, 1), (faster, -1))
        ]
        return at_once(values, begins[0], begins[1], self._baseline, self._phases, self._floor)

    def alike(self) -> Together:
        """Return the nodes that are slower than the others from the start on, where they are of two kinds."""
        slower = two_kinds(self._deviations, self._floor)
        return Together(slower, lasting=bool(slower))

    def _steps(self) -> np.ndarray:
        errors = np.broadcast_to(self._errors, self._change.shape)
        return np.asarray(np.fmax(step_noise(self._change, self._floor), errors))

    def _lasting(self) -> list[tuple[int, float, int, int, bool]]:
        """Nodes that deviate all the time, or again and again, from the start on or from early on."""
        less_sure = 1.0 if self._few else student(len(self._deviations))
        # As in the scan, one window is at most so many sigmas.
        most = CLIP * less_sure * self._sigma
        bounded = np.clip(self._deviations, -most, most)
        known = ~np.isnan(bounded)
        levels = np.where(known, bounded, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        middle = float(medians(levels))
        # Of a few nodes the scatter is unknown: the effect asked of them is greater.
        sigma = medians(self._sigma, 1) if self._few else max(float(scatter(levels - middle)), self._floor)
        scores = (levels - (0 if self._few else middle)) / sigma / (self._asked.level * less_sure)
        beyond = self._deviations > _BEYOND * self._sigma
        windows = self._deviations.shape[1]
        often = persists(self._deviations / self._sigma)
        for part in (slice(0, self._baseline or windows), slice(0, windows)):
            often &= beyond[:, part].sum(axis=1) >= np.maximum(limits.LASTING * known[:, part].sum(axis=1), 1)
        found = []
        for node in np.flatnonzero((scores > 1) & often).tolist():
            since = self.onset(node, 0, windows, True)
            found.append((node, float(scores[node]), since.window if since.sure else 0, windows, True))
        return found

    def _usual(self, scores: np.ndarray) -> float:
        """Return how much the nodes' scores reach without a fault: their windows may be noisier than taken for."""
        if self._few:
            return 0.0
        known = np.where(np.isfinite(scores), scores, 0.0)
        return float(medians(known) + limits.PEER_SIGMAS * mad(known))


def reference(values: np.ndarray) -> np.ndarray:
    """Return what the others do: the median of all nodes, or of all others where one node would move it."""
    if len(values) >= limits.FEW_NODES:
        return medians(values)
    return np.stack([medians(np.delete(values, place, axis=0)) for place in range(len(values))])
