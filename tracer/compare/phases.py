"""Phases of a job: which windows are of which, and by how much a node is off in each anyway.

A node that differs a little differs otherwise in each phase. So of each phase its habit is learnt from the windows of
that phase that came before, as far as there are any; of one that is seen for the first time nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

__all__ = ["Phase", "phases_of", "split", "summed", "within"]

# Octaves, of each level and of how many values there are.
_SAME_PHASE = 1.0
# Sigmas by which nodes are off in one phase: of the baseline, beside their habit in all of it; and of none in it.
_KNOWN, _NEW = 0.5, 3.0
_NOTHING = 1e-30


def phases_of(states: np.ndarray) -> np.ndarray:
    """Return the phase of each window, numbers from 0 on, ``(windows,)``.

    ``states`` ``(…, windows)`` are what all nodes do, as logarithms to base 2; NaN is like anything. A window is of the
    phase whose first window is most like it.
    """
    apart = np.nan_to_num(np.abs(states[:, :, None] - states[:, None])).max(axis=0)
    phases = np.zeros(len(apart), int)
    firsts: list[int] = []
    for window, others in enumerate(apart):
        if not firsts or others[firsts].min() > _SAME_PHASE:
            firsts.append(window)
        phases[window] = others[firsts].argmin()
    return phases


class Phase(NamedTuple):
    """Nodes' windows of one phase, in all of which a node is off by the same: sums up to each, ``(nodes, windows)``.

    Attributes:
        counts: how many are known.
        scores: sigmas by which they deviate.
        slopes: sigmas by which one unit of what the node is off by moves them.
        learnt, certainty: what is known of that: their quotient is its mean, one by the latter its variance.
    """

    counts: np.ndarray
    scores: np.ndarray
    slopes: np.ndarray
    learnt: np.ndarray
    certainty: np.ndarray

    def told(self, length: int, alike: float) -> tuple[np.ndarray, np.ndarray]:
        """Return what each stretch of so many windows says, ``(nodes, starts)``: a weighted sum, and its variance.

        Against what the windows before it say of the node. ``alike``: all may be off together by so many sigmas more.
        """
        number, slope = within(self.counts, length), within(self.slopes, length)
        learnt, certainty = (one[:, : number.shape[1]] for one in (self.learnt, self.certainty))
        away = within(self.scores, length) - slope * learnt / certainty
        weight = number / np.maximum(number + slope**2 / certainty + (alike * number) ** 2, 1)
        return weight * away, weight * number


def split(
    scores: np.ndarray, sigma: np.ndarray, phases: np.ndarray | int, baseline: int, unsure: np.ndarray
) -> Iterator[Phase]:
    """Yield the phases after the ``baseline``, of all windows' ``scores`` and ``sigma`` ``(nodes, windows)``.

    ``unsure`` ``(nodes,)`` is the standard error of nodes' habits, in units of ``sigma``.
    """
    phases = np.broadcast_to(phases, scores.shape[1:])
    before = set(phases[:baseline].tolist())
    for phase in np.unique(phases[baseline:]).tolist():
        known = ~np.isnan(scores) & (phases == phase)
        if before <= {phase}:
            # The baseline told the habit already, in units of the deviations.
            known[:, :baseline] = False
            slopes, certainty = 1 / sigma, np.maximum(unsure, _NOTHING) ** -2.0
        else:
            off = _KNOWN if phase in before else _NEW
            slopes, certainty = np.ones(sigma.shape), np.full(len(scores), off**-2.0)
        slopes, mine = np.where(known, slopes, 0), np.where(known, scores, 0)
        sums = (summed(one)[:, baseline:] for one in (known, mine, slopes, mine * slopes, slopes**2))
        counts, total, slope, learnt, more = sums
        yield Phase(counts, total, slope, learnt, certainty[:, None] + more)


def summed(values: np.ndarray) -> np.ndarray:
    """Return the sums of ``values`` ``(nodes, windows)`` up to each window, ``(nodes, windows + 1)``."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1, dtype=float)], axis=1)


def within(sums: np.ndarray, length: int) -> np.ndarray:
    """Return what is in each stretch of so many windows, of sums up to each."""
    return np.asarray(sums[:, length:] - sums[:, :-length])
