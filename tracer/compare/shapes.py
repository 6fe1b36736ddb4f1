"""What is compared of a histogram: where its middle lies, how heavy its tail is, and how sure that is."""

from __future__ import annotations

import numpy as np

from tracer.histogram import FIRST_BUCKET, LAST_BUCKET

__all__ = ["centroids", "cumulative", "log_centers", "means_ns", "tails"]

#: A window with fewer values says nothing of where the middle lies.
LEAST_VALUES = 20
_STEP = 1 / 8  # of log2, from one slot to the next
# The tail's rows are looked at in quarters of octaves: finer costs time and shows nothing more.
_COARSE = 2


def log_centers() -> np.ndarray:
    """Return log2 of the middle of every slot in ns, shape ``(SLOTS,)``; below a ns it is that of half a ns."""
    buckets = np.arange(FIRST_BUCKET - 1, LAST_BUCKET + 2)
    centers = np.log2(1e9) + (buckets - 0.5) * _STEP
    centers[0] = -1.0
    return np.asarray(centers)


def centroids(slots: np.ndarray, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean log2(ns) of histograms ``(…, n)``, whose first slot is ``first``, and its standard error.

    NaN of fewer than ``LEAST_VALUES`` values.
    """
    centers = log_centers()[first : first + slots.shape[-1]]
    values = slots.astype(np.float64)
    counts = values.sum(axis=-1)
    many = np.maximum(counts, 1)
    means = values @ centers / many
    variances = np.maximum(values @ centers**2 / many - means**2, 0)
    enough = counts >= LEAST_VALUES
    return np.where(enough, means, np.nan), np.where(enough, np.sqrt(variances / many), np.nan)


def means_ns(slots: np.ndarray, first: int = 0) -> np.ndarray:
    """Return the mean of histograms in ns; NaN where nothing was counted."""
    counts = slots.sum(axis=-1, dtype=np.float64)
    centers = 2.0 ** log_centers()[first : first + slots.shape[-1]]
    found: np.ndarray = np.where(counts > 0, slots @ centers / np.maximum(counts, 1), np.nan)
    return found


def cumulative(slots: np.ndarray) -> np.ndarray:
    """Return the distribution functions of histograms ``(…, n)`` in quarters of octaves."""
    coarse = np.add.reduceat(slots, np.arange(0, slots.shape[-1], _COARSE), axis=-1).astype(np.float64)
    counts = coarse.sum(axis=-1, keepdims=True)
    found: np.ndarray = np.where(counts >= LEAST_VALUES, np.cumsum(coarse, axis=-1) / np.maximum(counts, 1), np.nan)
    return found


def tails(
    functions: np.ndarray, reference: np.ndarray, values: np.ndarray, ahead: np.ndarray | float = 0.0
) -> np.ndarray:
    r"""Return how much later than ``reference`` histograms are, above all in the tail, in octaves; never below 0.

    One-sided Wasserstein distance whose gap is weighted with 1/√(F(1-F)), which is what sampling makes of it: so the
    tail counts as much as the middle. ``functions`` ``(nodes, windows, n)`` and ``reference`` ``(…, n)`` are of
    ``cumulative``; ``values`` ``(windows,)`` is how many a histogram usually holds: beyond 1/values there is nothing.
    ``ahead`` ``(nodes, windows)``: by so many octaves the whole of a histogram is later, which is no tail's doing.
    """
    floor = 1 / np.maximum(values, 2)[..., None]
    moved = _moved(np.broadcast_to(reference, functions.shape), np.broadcast_to(ahead, functions.shape[:-1]))
    inside = np.clip(moved, floor, 1 - floor)
    gap = np.maximum(moved - functions, 0) / np.sqrt(inside * (1 - inside))
    found: np.ndarray = gap.sum(axis=-1) * _STEP * _COARSE
    return found


def _moved(functions: np.ndarray, octaves: np.ndarray) -> np.ndarray:
    """Return distribution functions moved to the right by ``octaves``, between two of their steps where need be."""
    steps = np.nan_to_num(octaves)[..., None] / (_STEP * _COARSE)
    last = functions.shape[-1] - 1
    places = np.arange(last + 1) - steps
    below = np.floor(places).astype(int)
    low = np.where(below < 0, 0.0, np.take_along_axis(functions, np.clip(below, 0, last), -1))
    high = np.where(below + 1 < 0, 0.0, np.take_along_axis(functions, np.clip(below + 1, 0, last), -1))
    found: np.ndarray = low + (high - low) * (places - below)
    return found
