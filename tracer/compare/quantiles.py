"""Quantiles of many histograms at once, between the edges of a slot where need be.

What is shown of one histogram is the upper edge of a slot (``analysis.statistics``); two of those differ by nothing or
by 9 %, which is too coarse for changes.
"""

from __future__ import annotations

import numpy as np

from tracer.analysis.statistics import least
from tracer.compare.shapes import LEAST_VALUES, log_centers
from tracer.histogram import GROWTH

__all__ = ["log_quantiles"]


def log_quantiles(slots: np.ndarray, fraction: float, first: int = 0) -> np.ndarray:
    """Return log2 of a quantile in ns of histograms ``(…, n)``, whose first slot is ``first``.

    NaN of so few values that one or two decide it.
    """
    if not slots.shape[-1]:
        return np.full(slots.shape[:-1], np.nan)
    reached = np.cumsum(slots, axis=-1, dtype=np.float64)
    counts = reached[..., -1]
    wanted = fraction * counts
    place = (reached < wanted[..., None]).sum(axis=-1).clip(0, slots.shape[-1] - 1)
    inside = np.take_along_axis(slots, place[..., None], -1)[..., 0].astype(np.float64)
    missing = np.take_along_axis(reached, place[..., None], -1)[..., 0] - wanted
    part = 1 - missing / np.maximum(inside, 1)
    found: np.ndarray = log_centers()[first + place] + (part - 0.5) * np.log2(GROWTH)
    return np.where(counts >= max(LEAST_VALUES, least(fraction)), found, np.nan)
