"""The stretch of a side that is furthest above the other side, and whether chance puts one there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tracer.compare.limits import BULK_FLOOR
from tracer.compare.robust import SIGMA_OF_MAD, medians
from tracer.difference import limits
from tracer.difference.spans import slow_spans

__all__ = ["Found", "scan"]

_SEED = 20261130  # the same recordings give the same answer
_FURTHEST = 3.0  # scatters: a burst, however high, is one block
_LONGER = 1.2  # each length that is tried is so many times the one before
_LEAST_SCATTER = 0.5  # of blocks: what is slow may scatter more than what was not
_NONE = 0.15  # a correlation of blocks that is less than this is none


@dataclass(frozen=True)
class Found:
    """``after`` is above ``before`` from block to block of each of ``spans``, with gaps between in which it is not, in
    the measures of which ``above`` ``(measures,)`` is true."""

    spans: tuple[tuple[int, int], ...]
    above: np.ndarray

    @property
    def start(self) -> int:
        """The first block."""
        return self.spans[0][0]

    @property
    def end(self) -> int:
        """Behind the last block."""
        return self.spans[-1][1]


def scan(befores: Sequence[np.ndarray], after: np.ndarray) -> Found | None:
    """Look for a stretch of ``after`` above ``befores``: blocks as long everywhere, ``(blocks, measures)`` of each
    recording, NaN where unknown. None where shuffled blocks have one as clear more often than ``limits.STRETCH_ERROR``.

    Every stretch of every measure has a score: by how much its blocks together are above as many of ``befores``, in
    scatters of all blocks, where no block counts for more than three. The greatest is held against the greatest of the
    same blocks, both sides' together, shuffled in pieces as long as what goes on in one of them lasts. Sources:
    Kulldorff, A spatial scan statistic (1997); Politis and Romano, A circular block-resampling procedure (1992).
    """
    before = sum(map(len, befores))
    if min(before, len(after)) < 2 * limits.LEAST_BLOCKS:
        return None
    levels = _levels(np.concatenate([*befores, after]))
    recordings = np.split(levels[:before], np.cumsum([len(one) for one in befores])[:-1])
    shuffled = levels[_shuffles(len(levels), _lasting(recordings))]
    greatest, best = np.zeros(len(shuffled)), (0.0, 0, 0)
    scores = {}
    for (length, ours), (_, chance) in zip(_sums(levels, before), _sums(shuffled, before), strict=True):
        scatter = float(np.sqrt((chance**2).mean())) or 1.0
        np.maximum(greatest, chance.max(axis=(1, 2)) / scatter, out=greatest)
        scores[length] = ours / scatter
        start = int(scores[length].max(axis=1).argmax())
        best = max(best, (float(scores[length][start].max()), length, start))
    least = float(np.quantile(greatest, 1 - limits.STRETCH_ERROR))
    score, length, start = best
    if score <= least:
        return None
    above = scores[length][start] > least
    rise = (levels - levels[:before].mean(axis=0))[:, above].mean(axis=1)
    scatter = max(_LEAST_SCATTER, float(rise[:before].std()))
    return Found(slow_spans(rise[before:], *_edges(rise[before:], start, start + length), scatter), above)


def _levels(values: np.ndarray) -> np.ndarray:
    """Return how many scatters each value is from the middle of its column; 0 of what is unknown."""
    rest = values - medians(values, 0)
    levels = rest / np.fmax(SIGMA_OF_MAD * medians(np.abs(rest), 0), BULK_FLOOR)
    return np.asarray(np.nan_to_num(levels.clip(-_FURTHEST, _FURTHEST)), np.float32)


def _edges(rise: np.ndarray, start: int, end: int) -> tuple[int, int]:
    """Return from where to where a stretch is: lengths are tried in steps, and it ends where half of its rise does."""
    half = rise[start:end].mean() / 2
    while end - start > limits.LEAST_BLOCKS and rise[start] < half:
        start += 1
    while end - start > limits.LEAST_BLOCKS and rise[end - 1] < half:
        end -= 1
    while start > 0 and rise[start - 1] >= half:
        start -= 1
    while end < len(rise) and rise[end] >= half:
        end += 1
    return start, end


def _lasting(recordings: Sequence[np.ndarray]) -> int:
    """Return for how many blocks what goes on lasts, in the measure in which that is longest.

    A half and the correlations up to the first that is none. Of few blocks they are too low: see ``noise.apart``.
    """
    rests = [levels - levels.mean(axis=0) for levels in recordings]
    squares = sum((rest**2).sum(axis=0) for rest in rests)
    rests, squares = [rest[:, squares > 0] for rest in rests], squares[squares > 0]
    blocks = max(map(len, rests))
    lags = range(1, blocks // 2)
    alike = np.array(
        [sum((rest[lag:] * rest[:-lag]).sum(axis=0) for rest in rests) / squares + 1 / blocks for lag in lags]
    )
    until = np.cumprod(alike >= _NONE, axis=0)
    longest = 0.5 + (alike * until).sum(axis=0).max(initial=0)
    return max(int(np.ceil(longest)), round(blocks * limits.LEAST_PIECE))


def _shuffles(blocks: int, piece: int) -> np.ndarray:
    """Return places ``(shuffles, blocks)``: the row of blocks closed to a ring, cut anywhere into pieces, and mixed."""
    random = np.random.default_rng(_SEED)
    cut = np.array_split(np.arange(blocks), max(1, blocks // piece))
    return np.stack(
        [
            (np.concatenate([cut[place] for place in random.permutation(len(cut))]) + turn) % blocks
            for turn in random.integers(blocks, size=limits.STRETCHES)
        ]
    )


def _sums(levels: np.ndarray, before: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each length and what stretches of it, from each start, have more than as many blocks ``before``."""
    usual = levels[..., :before, :].mean(axis=-2, keepdims=True)
    after = levels[..., before:, :] - usual
    summed = np.zeros((*after.shape[:-2], after.shape[-2] + 1, after.shape[-1]), np.float32)
    np.cumsum(after, axis=-2, out=summed[..., 1:, :])
    length = limits.LEAST_BLOCKS
    while length < after.shape[-2]:
        yield length, summed[..., length:, :] - summed[..., :-length, :]
        length = max(length + 1, int(length * _LONGER))
