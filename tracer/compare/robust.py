"""Medians that know about missing values, without a warning and without a loop."""

from __future__ import annotations

import numpy as np

__all__ = ["SIGMA_OF_MAD", "mad", "medians", "quantiles", "scatter"]

#: Of a normal distribution.
SIGMA_OF_MAD = 1.4826
_MOST, _SIGMAS_OF_MOST = 0.8, 1.2816


def medians(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return the medians of what is not NaN along ``axis``; NaN where nothing is known."""
    if not values.shape[axis]:
        return np.full(np.delete(values.shape, axis), np.nan)
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, 0)  # NaN come last
    known = (~np.isnan(ordered)).sum(axis=0)[None]
    low, high = np.maximum(known - 1, 0) // 2, np.maximum(known, 1) // 2
    pick = np.take_along_axis
    # Of one value both are it; of none the first is NaN.
    found: np.ndarray = (pick(ordered, low, 0) + pick(ordered, np.where(known > 0, high, 0), 0))[0] / 2
    return found


def scatter(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return sigma of ``values`` around 0, by their middle and by what one in five exceeds, whichever is more.

    Latencies scatter with long tails, of which the middle alone knows nothing. Single nodes' faults are on fewer than
    one in five.
    """
    away = np.abs(values)
    return np.fmax(SIGMA_OF_MAD * medians(away, axis), quantiles(away, _MOST, axis) / _SIGMAS_OF_MOST)


def quantiles(values: np.ndarray, fraction: float, axis: int = 0) -> np.ndarray:
    """Return a quantile of what is not NaN along ``axis``, the next lower value; NaN where nothing is known."""
    if not values.shape[axis]:
        return np.full(np.delete(values.shape, axis), np.nan)
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, 0)
    known = (~np.isnan(ordered)).sum(axis=0)[None]
    found: np.ndarray = np.take_along_axis(ordered, (np.maximum(known - 1, 0) * fraction).astype(int), 0)[0]
    return found


def mad(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return sigma as the median distance from the median tells it."""
    return SIGMA_OF_MAD * medians(np.abs(values - np.expand_dims(medians(values, axis), axis)), axis)
