"""How far two sides are apart, beside how far blocks of each are apart: intervals that all hold together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer.compare.limits import BULK_FLOOR
from tracer.difference import limits

__all__ = ["Apart", "apart"]

_SEED = 20261130  # the same recordings give the same answer


@dataclass(frozen=True)
class Apart:
    """Shapes ``(measures,)``: means of both sides' blocks, and how far off their difference may be (``half``).

    NaN where a side has too few blocks. ``memory``: how alike two blocks are that follow each
    other, from 0 to 1, for half of the measures.
    """

    before: np.ndarray
    after: np.ndarray
    half: np.ndarray
    memory: float


def apart(before: np.ndarray, after: np.ndarray, seconds: tuple[float, float]) -> Apart:
    """Compare blocks of two sides, ``(blocks, measures)`` each, NaN where unknown; ``seconds`` are the sides' lengths.

    The intervals are as wide as it takes for all of them to hold together. Sides are made again and again of what is
    new in each block, shuffled, with the memory that blocks have; in 2 % of them some measure is further apart, in its
    own standard errors. Sources: Westfall and Young, Resampling-Based Multiple Testing (1993); Bühlmann, Sieve
    bootstrap for time series, Bernoulli 3 (1997).
    """
    sides = (_Moments(before), _Moments(after))
    usable = np.minimum(sides[0].number, sides[1].number) >= limits.LEAST_BLOCKS
    variances = [one.variance / np.maximum(one.number, 1) for one in sides]
    for short, long in ((0, 1), (1, 0)):
        if seconds[short] < limits.MOMENT * seconds[long]:
            # What goes on for longer than the short side lasts is in none of its blocks, but in those of the long one.
            blocks = max(1.0, seconds[short] / seconds[long] * limits.BLOCKS)
            variances[short] = np.maximum(variances[short], sides[long].variance / blocks)
    rests = [np.nan_to_num(one.rest)[:, usable] for one in sides]
    memory = _memory(rests)
    half = np.full(before.shape[1], np.nan)
    if usable.any():
        greatest = _greatest(rests, [~np.isnan(one.rest[:, usable]) for one in sides], memory)
        half[usable] = np.quantile(greatest, 1 - limits.ERROR) * np.sqrt(variances[0] + variances[1])[usable]
    means = [np.where(usable, one.mean, np.nan) for one in sides]
    return Apart(means[0], means[1], half, float(np.median(memory)) if memory.size else 0.0)


class _Moments:
    """Number, mean and variance of what is known in blocks, the axis before the last; ``rest`` is without the mean."""

    def __init__(self, values: np.ndarray) -> None:
        known = ~np.isnan(values)
        self.number = known.sum(axis=-2)
        self.mean = np.where(known, values, 0).sum(axis=-2) / np.maximum(self.number, 1)
        self.rest = values - self.mean[..., None, :]
        squares = (np.where(known, self.rest, 0) ** 2).sum(axis=-2)
        self.variance = np.maximum(squares / np.maximum(self.number - 1, 1), BULK_FLOOR**2)


def _memory(rests: list[np.ndarray]) -> np.ndarray:
    """Return the correlation of a block with the next, from 0 on, of each measure.

    One measure alone tells too little: it is that of all, or half-way to its own where that is more. An estimate from
    few blocks is too low. Source: Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41 (1954).
    """
    squares = [(rest**2).sum(axis=0) for rest in rests]
    products = [(rest[1:] * rest[:-1]).sum(axis=0) for rest in rests]
    total = sum(squares)
    own = np.divide(sum(products), total, out=np.zeros_like(total), where=total > 0)
    every = own.mean() if own.size else 0.0
    blocks = min(len(rest) for rest in rests)
    corrected = (np.maximum(every, (own + every) / 2) + 1 / blocks) / (1 - 3 / blocks)
    return np.asarray(np.clip(corrected, 0, limits.MOST_MEMORY))


def _greatest(rests: list[np.ndarray], known: list[np.ndarray], memory: np.ndarray) -> np.ndarray:
    """Return by how many standard errors the measures are apart at most, in each of the shuffles."""
    random = np.random.default_rng(_SEED)
    new = np.concatenate([rest[1:] - memory * rest[:-1] for rest in rests])
    new -= new.mean(axis=0)
    made = []
    for rest, seen in zip(rests, known, strict=True):
        blocks = new[random.integers(0, len(new), (limits.SHUFFLES, len(rest)))]
        blocks[:, 0] /= np.sqrt(1 - memory**2)
        for place in range(1, len(rest)):
            blocks[:, place] += memory * blocks[:, place - 1]
        made.append(_Moments(np.where(seen, blocks, np.nan)))
    errors = np.sqrt(sum(one.variance / np.maximum(one.number, 1) for one in made))
    scores = np.abs(made[1].mean - made[0].mean) / errors
    return np.asarray(scores.max(axis=1))
