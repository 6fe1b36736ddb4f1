"""How far recordings of other times are apart where nothing changed: what else a node does comes and goes slowly."""

from __future__ import annotations

import numpy as np

from tracer.difference import limits

__all__ = ["between"]

_SEED = 20261130  # the same recordings give the same answer


def between(middles: np.ndarray, variance: np.ndarray, rest: np.ndarray, own: np.ndarray | float = 0.0) -> np.ndarray:
    """Return how far one more recording may be from the mean of those before, in all measures at once, ``(measures,)``.

    ``middles`` ``(recordings, measures)`` are the means of those before, NaN where unknown; ``variance`` of shape
    ``(measures,)`` is that of single blocks of a recording; ``rest`` ``(blocks, measures)`` are blocks without their
    mean; ``own`` ``(measures,)`` is by how much the variance of the one more is greater, as it is shorter.

    By how much recordings scatter beside single blocks is estimated over all measures, and each measure's own scatter
    counts as much as there are recordings to tell it (an empirical Bayes estimate). One recording tells nothing of
    that: it is taken to be as much, since what goes on lasts for longer than a recording (``limits.BETWEEN``). What
    fewer than 2 % of recordings exceed in any measure is found by drawing some that are as correlated as the blocks.
    Source: Smyth, Linear models and empirical Bayes methods, Statistical Applications in Genetics and Molecular Biology
    3 (2004).
    """
    freedom, moves = len(middles) - 1, (rest**2).sum(axis=0) > 0
    scatter = _variance(middles) if freedom else np.zeros_like(variance)
    known = np.where(np.isnan(scatter), 0, freedom)
    telling = moves & (known > 0)
    common = float(_typical((scatter / variance)[telling])[0]) if telling.any() else limits.BETWEEN
    moderated = _moderated(common * variance, np.nan_to_num(scatter), known)
    return _greatest(len(middles), rest[:, moves]) * np.sqrt(moderated * (1 + 1 / len(middles)) + own)


def _moderated(expected: np.ndarray, scatter: np.ndarray, freedom: np.ndarray | int) -> np.ndarray:
    found: np.ndarray = (limits.ALIKE * expected + freedom * scatter) / (limits.ALIKE + freedom)
    return found


def _typical(scatter: np.ndarray) -> np.ndarray:
    """Return the geometric mean over measures, the last axis, which is kept: a few that scatter widely say little."""
    floored = np.maximum(scatter, 1 / limits.BLOCKS)  # the mean of so many blocks can't scatter less
    return np.asarray(np.exp(np.log(floored).mean(axis=-1, keepdims=True)))


def _variance(middles: np.ndarray) -> np.ndarray:
    return np.asarray(middles.var(axis=-2, ddof=1))


def _greatest(recordings: int, rest: np.ndarray) -> float:
    """Return how far, in its own moderated scatters, one more recording is at most from so many."""
    if not rest.size:
        return 0.0
    random, freedom = np.random.default_rng(_SEED), recordings - 1
    alike = rest / np.sqrt((rest**2).mean(axis=0))
    # A sum of all blocks with normal weights is normal, and as correlated as they are.
    weights = random.normal(size=(limits.TIMES * (recordings + 1), len(alike))) / np.sqrt(len(alike))
    drawn = (weights @ alike).reshape(limits.TIMES, recordings + 1, -1)
    drawn /= np.sqrt(random.chisquare(limits.ALIKE, (limits.TIMES, 1, drawn.shape[-1])) / limits.ALIKE)
    scatter = _variance(drawn[:, :-1]) if freedom else np.zeros(drawn[:, 0].shape)
    common = _typical(scatter) if freedom else np.ones((limits.TIMES, 1))
    apart = np.abs(drawn[:, -1] - drawn[:, :-1].mean(axis=1))
    scores = apart / np.sqrt(_moderated(common, scatter, freedom) * (1 + 1 / recordings))
    return float(np.quantile(scores.max(axis=-1), 1 - limits.ERROR))
