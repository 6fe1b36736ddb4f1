"""How much two groups of nodes differ in one number per node, how sure that is, and how many nodes would make it so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from tracer.compare import limits

__all__ = ["Contrast", "contrast", "nodes_needed", "t_quantile"]

_STEPS = 20_000
_MOST_FREEDOM = 1_000


@dataclass(frozen=True)
class Contrast:
    """``difference`` of two groups' middles, in the unit of the values; the truth is at most ``half`` away.

    ``variances`` are of one node in each group, as a trimmed mean sees it.
    """

    difference: float
    half: float
    variances: tuple[float, float]


def contrast(ours: np.ndarray, theirs: np.ndarray, error: float) -> Contrast:
    """Compare two groups' values, one per node, shapes ``(n,)`` and ``(m,)``, at least four each.

    The interval misses the truth with probability ``error``. Welch's, of means without the outer fifth on either
    side: one straggler is not its group's doing. Source: Yuen, Biometrika 61 (1974) 165-170. No group is taken to
    scatter less than both do on average: a few nodes may miss, by chance, what a skewed scatter is made of.
    """
    (mean, variance, left), (other, their_variance, their_left) = _trimmed(ours), _trimmed(theirs)
    both = (variance * (left - 1) + their_variance * (their_left - 1)) / (left + their_left - 2)
    variance, their_variance = max(variance, both), max(their_variance, both)
    parts = variance / left, their_variance / their_left
    squares = parts[0] ** 2 / (left - 1) + parts[1] ** 2 / (their_left - 1)
    freedom = sum(parts) ** 2 / squares if squares else 1.0
    half = t_quantile(1 - error / 2, max(1.0, freedom)) * sqrt(sum(parts))
    # What is left of n nodes stands for all of them.
    each = variance * len(ours) / left, their_variance * len(theirs) / their_left
    return Contrast(mean - other, half, each)


def nodes_needed(variances: tuple[float, float], difference: float, error: float, power: float) -> int:
    """Return of how many nodes in each group an interval would exclude 0, with probability ``power``."""
    normal = NormalDist()
    reach = normal.inv_cdf(1 - error / 2) + normal.inv_cdf(power)
    return max(limits.FEWEST_IN_COHORT, ceil(reach**2 * sum(variances) / difference**2))


@cache
def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t, for probabilities from 0.5 on.

    By t = √freedom · tan(a), of which the density is cos(a)^(freedom - 1): bounded, and smooth enough for a sum.
    """
    if freedom > _MOST_FREEDOM:
        return NormalDist().inv_cdf(probability)
    angles = np.linspace(0, np.pi / 2, _STEPS + 1)
    heights = np.cos(angles) ** (freedom - 1)
    sums = np.concatenate([[0.0], np.cumsum(heights[1:] + heights[:-1])])
    return float(sqrt(freedom) * np.tan(np.interp((2 * probability - 1) * sums[-1], sums, angles)))


def _trimmed(values: np.ndarray) -> tuple[float, float, int]:
    """Return the trimmed mean, the variance of one value in it, and how many values it is of."""
    ordered = np.sort(values)
    number = len(ordered)
    cut = int(limits.TRIMMED * number)
    left = number - 2 * cut
    inner = ordered[cut : number - cut]
    winsorized = np.clip(ordered, inner[0], inner[-1])
    return float(inner.mean()), float(winsorized.var(ddof=1)) * (number - 1) / (left - 1), left
