"""What could be found at most, by who knows the fault, its onset, its node's habit and how healthy nodes scatter.

The likelihood ratio of what it sees, window by window, as far as that is linear in the shape of a distribution. It
learns from more nodes drawn like those of the cluster, half of them with the fault, and is asked about others.
"""

from __future__ import annotations

from math import log

import numpy as np

from sim.cluster import HEALTHY, INTERVALS, Story, others_like
from tracer.compare.robust import medians, scatter
from tracer.compare.shapes import beyond, blurred, centroids, one_more

__all__ = ["ALARMS", "recall_of_oracle"]

#: Healthy nodes it may accuse: one in 1,000 node-days, when each is judged once in ten minutes.
ALARMS = 1 / 1000 / (86400 / (38 * INTERVALS))
_DRAWN = 128
# A burst is in one window of fifty and looks like a fault: so much, in nats, is what one window can say.
_CLIP = log(50)
_OUTLIER, _RIDGE = 4.0, 0.02


def recall_of_oracle(story: Story, fault: str, random: np.random.Generator) -> np.ndarray:
    """Return which share of nodes with ``fault`` it finds, by how many windows after the onset it has seen."""
    drawn = [others_like(story, one, random, 2 * _DRAWN) for one in (HEALTHY, fault)]
    well, ill = (_features(*one, drawn[0][0], story.first) for one in drawn)
    chance = one_more(medians(drawn[0][0].sum(axis=-1, dtype=float)))
    ratios = np.stack([_ratios(well[:, one], ill[:, one], chance[one]) for one in range(len(chance))], axis=-1)
    sums = np.cumsum(ratios, axis=-1)  # (well or ill, node, windows)
    # A likelihood ratio exceeds 1/p with a chance of at most p where there is no fault (Wald 1945).
    needed = np.fmax(sums[0].max(axis=0), log(1 / ALARMS))
    return np.asarray((sums[1] > needed).mean(axis=0))


def _ratios(well: np.ndarray, ill: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Return the logarithms of likelihood ratios, ``(2, nodes)``, of nodes from which nothing was learnt.

    Of ``well`` and ``ill`` ``(nodes, features)`` the last are levels, of which ``chance`` is the least scatter.
    """
    middle = medians(well[:_DRAWN])
    scale = np.fmax(scatter(well[:_DRAWN] - middle), 1e-9)
    scale[-len(chance) :] = np.fmax(scale[-len(chance) :], chance)
    # What bursts do is no noise to be reckoned with: no window says more than _CLIP.
    sure = [_bounded((one[:_DRAWN] - middle) / scale) for one in (well, ill)]
    between = sure[1].mean(axis=0) - sure[0].mean(axis=0)
    covariance = np.cov(sure[0].T) / 2 + np.cov(sure[1].T) / 2 + _RIDGE * np.eye(len(between))
    weights = np.linalg.solve(covariance, between)
    halfway = (sure[1].mean(axis=0) + sure[0].mean(axis=0)) / 2
    asked = ((one[_DRAWN:] - middle) / scale - halfway for one in (well, ill))
    return np.stack([np.clip(one @ weights, -_CLIP, _CLIP) for one in asked])


def _bounded(values: np.ndarray) -> np.ndarray:
    usual = medians(values)
    return np.asarray(usual + np.clip(values - usual, -_OUTLIER, _OUTLIER))


def _features(slots: np.ndarray, octaves: np.ndarray, usual: np.ndarray, first: int) -> np.ndarray:
    """Return what it looks at, ``(nodes, windows, features)``; ``usual`` are histograms of healthy nodes."""
    middles, _ = centroids(slots, first)
    counts, habit = slots.sum(axis=-1, dtype=float), np.zeros(len(slots))
    levels = beyond(blurred(slots), medians(blurred(usual)), counts, habit, 0.0)
    known = np.broadcast_to(octaves[:, None], middles.shape)
    return np.nan_to_num(np.stack([middles, known, *(more for more, _ in levels)], axis=-1))
