"""One number per node and series, over a whole recording: what cohorts are compared by.

In octaves relative to the other nodes, so that the difference of two is the logarithm of a ratio.
"""

from __future__ import annotations

import numpy as np

from tracer.compare.quantiles import log_quantiles
from tracer.compare.robust import medians
from tracer.compare.scan import LEAST_WINDOWS
from tracer.compare.shapes import centroids

__all__ = ["TAIL", "middles", "ratios", "tails"]

#: The quantile that stands for the tail.
TAIL = 0.99


def middles(slots: np.ndarray, first: int = 0) -> np.ndarray:
    """Return how much later the middles of histograms ``(nodes, windows, n)`` are, shape ``(nodes,)``.

    The mean over a node's windows of its distance from all nodes' median meanwhile: so neither the phases of a job nor
    windows that a node lacks count. NaN of a node with too few windows. ``first`` is the histograms' first slot.
    """
    apart = centroids(slots, first)[0]
    apart = apart - medians(apart)
    known = (~np.isnan(apart)).sum(axis=1)
    return np.where(known >= LEAST_WINDOWS, np.nansum(apart, axis=1) / np.maximum(known, 1), np.nan)


def tails(slots: np.ndarray, first: int = 0) -> np.ndarray:
    """Return log2 of the tail's quantile in ns of histograms ``(nodes, windows, n)``, all windows together.

    NaN of a node with too few values.
    """
    return log_quantiles(slots.sum(axis=1), TAIL, first)


def ratios(pairs: np.ndarray, negligible: float) -> np.ndarray:
    """Return log2 of (above, below) ``(nodes, windows, 2)`` as ratios beside what all nodes have meanwhile.

    All windows together, as observed over expected: a node is expected to have the median ratio of each of its
    windows. So much as is ``negligible`` is added to both.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        usual = medians(np.where(pairs[..., 1] > 0, pairs[..., 0] / pairs[..., 1], np.nan))
    known = pairs[..., 1] > 0
    below = np.where(known, pairs[..., 1], 0.0)
    total = below.sum(axis=1)
    observed = np.where(known, pairs[..., 0], 0.0).sum(axis=1)
    expected = (below * np.nan_to_num(usual)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.log2((observed / total + negligible) / (expected / total + negligible))
    return np.where(known.sum(axis=1) >= LEAST_WINDOWS, found, np.nan)
