"""How far two sides are apart, beside how far blocks of each are apart: intervals that all hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracer.compare.limits import BULK_FLOOR
from tracer.difference import limits
from tracer.difference.times import between

__all__ = ["Apart", "apart"]

_SEED = 20261130  # the same recordings give the same answer


@dataclass(frozen=True)
class Apart:
    """Shapes ``(measures,)``: means of both sides' blocks, and how far off their difference may be (``half``).

    ``doubt``: as far apart two times of the same may be; it is ``half`` where several recordings, long enough, say it.
    NaN where a side has too few blocks. ``memory``: how alike two blocks are that follow each
    other, from 0 to 1, for half of the measures.
    """

    before: np.ndarray
    after: np.ndarray
    half: np.ndarray
    doubt: np.ndarray
    memory: float


def apart(befores: Sequence[np.ndarray], after: np.ndarray, seconds: tuple[float, float]) -> Apart:
    """Compare blocks of two sides, ``(blocks, measures)`` each, NaN where unknown; ``seconds`` are the sides' lengths.

    ``befores`` are of one recording each. The intervals are as wide as it takes for all of them to hold together. Sides
    are made again and again of what is new in each block, shuffled, with the memory that blocks have; in 2 % of them
    some measure is further apart, in its own standard errors. Sources: Westfall and Young, Resampling-Based Multiple
    Testing (1993); Bühlmann, Sieve bootstrap for time series, Bernoulli 3 (1997).

    Of several recordings only these tell the noise: by what it does in its middle ``after`` would be its own alibi; but
    no single block of it makes a change.
    """
    sides = (_Moments(*befores), _Moments(after))
    usable = np.minimum(sides[0].number, sides[1].number) >= limits.LEAST_BLOCKS
    variances = [one.variance / np.maximum(one.number, 1) for one in sides]
    for short, long in ((0, 1), (1, 0)):
        if seconds[short] < limits.MOMENT * seconds[long]:
            # What goes on for longer than the short side lasts is in none of its blocks, but in those of the long one.
            blocks = max(1.0, seconds[short] / seconds[long] * limits.BLOCKS)
            variances[short] = np.maximum(variances[short], sides[long].variance / blocks)
    rests = [np.nan_to_num(one.rest)[:, usable] for one in sides]
    memory = _memory(rests)
    half, doubt = (np.full(after.shape[1], np.nan) for _ in range(2))
    if usable.any():
        middles = np.stack([_Moments(one).mean[usable] for one in befores])
        if len(befores) > 1:
            # A short recording is further off by itself.
            own = (sides[0].variance / np.maximum(sides[0].number, 1))[usable] * len(befores)
            own *= max(0.0, seconds[0] / seconds[1] - 1)
            half[usable] = between(middles, sides[0].variance[usable], rests[0], own) + _burst(after[:, usable])
            doubt = half * _shortness(seconds[0])
        else:
            variance = (sides[0].variance + sides[1].variance)[usable] / 2
            own = np.maximum(variances[1] - variances[0], 0)[usable]
            greatest = _greatest(rests, [~np.isnan(one.rest[:, usable]) for one in sides], memory)
            half[usable] = np.quantile(greatest, 1 - limits.ERROR) * np.sqrt(variances[0] + variances[1])[usable]
            doubt[usable] = between(middles, variance, np.concatenate(rests), own)
            healthy = limits.HEALTHY * _shortness(min(seconds))
            doubt = np.clip(doubt * _shortness(seconds[0]), half, half + healthy)
    means = [np.where(usable, one.mean, np.nan) for one in sides]
    return Apart(means[0], means[1], half, doubt, float(np.median(memory)) if memory.size else 0.0)


class _Moments:
    """Number, mean and variance of what is known in the blocks of recordings; ``rest`` is without each one's mean.

    Blocks are the axis before the last.
    """

    def __init__(self, *recordings: np.ndarray) -> None:
        values = np.concatenate(recordings, axis=-2)
        known = ~np.isnan(values)
        self.number = known.sum(axis=-2)
        middles = [_mean(one) for one in recordings]
        self.mean = _mean(np.stack(middles, axis=-2))
        self.rest = np.concatenate(
            [one - middle[..., None, :] for one, middle in zip(recordings, middles, strict=True)], axis=-2
        )
        squares = (np.where(known, self.rest, 0) ** 2).sum(axis=-2)
        self.variance = np.maximum(squares / np.maximum(self.number - len(recordings), 1), BULK_FLOOR**2)


def _shortness(seconds: float) -> float:
    """Return how much further off other times recordings of so many seconds are than they tell."""
    return max(1.0, float(np.sqrt(limits.LONG_ENOUGH / seconds)))


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of what is known over the axis before the last; NaN of nothing."""
    known = ~np.isnan(values)
    number = known.sum(axis=-2)
    total = np.where(known, values, 0).sum(axis=-2)
    return np.asarray(np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0))


def _burst(values: np.ndarray) -> np.ndarray:
    """Return by how much the mean of what is known in the blocks depends on a single one."""
    rest = np.abs(values - _mean(values))
    number = (~np.isnan(values)).sum(axis=0)
    return np.asarray(np.nanmax(rest, axis=0) / (number - 1))


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
