"""What others compare nodes by, on the same histograms: each scores node-windows, three in a row are a fault."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracer.compare.robust import SIGMA_OF_MAD, mad, medians
from tracer.compare.scan import LEAST_WINDOWS

__all__ = ["RIVALS", "in_a_row"]

_FLOOR = 1e-6


def p99_mad(slots: np.ndarray) -> np.ndarray:
    """Robust z of log2 of the p99, among the nodes of each window."""
    functions = _functions(slots)
    place = np.where(np.isnan(functions[..., -1]), np.nan, (functions < 0.99).sum(axis=-1).astype(float))
    return _robust(place, 1.0)


def ks(slots: np.ndarray) -> np.ndarray:
    """Robust z of the Kolmogorov-Smirnov distance from the median distribution."""
    functions = _functions(slots)
    return _robust(np.abs(functions - medians(functions)).max(axis=-1))


def wasserstein(slots: np.ndarray) -> np.ndarray:
    """Robust z of the Wasserstein-1 distance, over log2, from the median distribution."""
    functions = _functions(slots)
    return _robust(np.abs(functions - medians(functions)).sum(axis=-1))


def pairwise(slots: np.ndarray) -> np.ndarray:
    """Sum of Euclidean distances to all other nodes, normalised among the nodes, in the manner of Minder."""
    sums = np.full(slots.shape[:2], np.nan)
    for window in range(slots.shape[1]):
        counts = slots[:, window].sum(axis=-1)
        known = counts > 0
        parts = slots[known, window] / counts[known, None]
        squares = (parts**2).sum(axis=-1)
        apart = squares[:, None] + squares - 2 * parts @ parts.T
        sums[known, window] = np.sqrt(np.maximum(apart, 0)).sum(axis=-1)
    return _robust(sums)


RIVALS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "p99 + MAD": p99_mad,
    "KS": ks,
    "Wasserstein": wasserstein,
    "pairwise L2": pairwise,
}


def in_a_row(scores: np.ndarray) -> np.ndarray:
    """Return per node the highest threshold that three windows in a row exceed; -inf when there are none."""
    filled = np.where(np.isnan(scores), -np.inf, scores)
    runs = np.lib.stride_tricks.sliding_window_view(filled, LEAST_WINDOWS, axis=1).min(axis=-1)
    return np.asarray(runs.max(axis=1))


def _functions(slots: np.ndarray) -> np.ndarray:
    counts = slots.sum(axis=-1, keepdims=True)
    return np.where(counts > 0, np.cumsum(slots, axis=-1) / np.maximum(counts, 1), np.nan)


def _robust(values: np.ndarray, floor: float = _FLOOR) -> np.ndarray:
    return np.asarray((values - medians(values)) / np.fmax(mad(values), floor * SIGMA_OF_MAD))
