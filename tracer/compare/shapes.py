"""What is compared of a histogram: where its middle lies, how heavy its tail is, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.histogram import FIRST_BUCKET, LAST_BUCKET

__all__ = ["LEVELS", "PER_OCTAVE", "beyond", "blurred", "centroids", "log_centers", "means_ns", "one_more", "states"]

#: A window with fewer values says nothing of where the middle lies.
LEAST_VALUES = 20
_STEP = 1 / 8  # of log2, from one slot to the next
_OCTAVE = 8  # slots
# Distributions are looked at in quarters of octaves: finer costs time and shows nothing more.
_COARSE = 2
#: Places of a blurred distribution function in an octave.
PER_OCTAVE = _OCTAVE // _COARSE
#: So much of the usual values is beyond each: where a fault shows depends on what else is there.
LEVELS = (0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 0.004, 0.0015, 5e-4, 1e-4, 1e-5)
# Variance of a number of values, relative to its square, that is there besides chance: 14 %.
_RELATIVE = 0.02
# Where none is usual, there may be half a value.
_NONE = 0.5


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


def blurred(slots: np.ndarray) -> np.ndarray:
    """Return the distribution functions of histograms ``(…, n)``, each the mean over an octave, every quarter of one.

    Values that are much alike make steps in a distribution, beside which a node that is slower by a slot looks as if
    half its values were. NaN of fewer than ``LEAST_VALUES`` values.
    """
    counts = slots.sum(axis=-1, dtype=np.float64)[..., None]
    cumulated = np.cumsum(slots, axis=-1, dtype=np.float64)
    before = np.zeros((*slots.shape[:-1], _OCTAVE + 1))
    sums = np.cumsum(np.concatenate([before, cumulated, np.repeat(counts, _OCTAVE, -1)], axis=-1), axis=-1)
    means = (sums[..., _OCTAVE::_COARSE] - sums[..., :-_OCTAVE:_COARSE]) / _OCTAVE
    found: np.ndarray = np.where(counts >= LEAST_VALUES, means / np.maximum(counts, 1), np.nan)
    return found


def beyond(
    functions: np.ndarray, reference: np.ndarray, values: np.ndarray, ahead: np.ndarray, floor: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for each of ``LEVELS``, how many more values than usual are beyond it, and the least error of that.

    ``functions`` ``(nodes, windows, n)`` and ``reference`` ``(…, windows, n)`` are of ``blurred``, ``values``
    ``(nodes, windows)`` is how many there are, ``ahead`` ``(nodes,)`` by how many octaves a node's values are later
    anyway. Both that is yielded are ``(nodes, windows)``, in units of which chance makes one where values are few. The
    error is that of counting, or what ``floor`` octaves more of all values make, whichever is greater.
    """
    last = functions.shape[-1] - 1
    later = (ahead / (_STEP * _COARSE))[:, None]
    for level in LEVELS:
        place = np.minimum((reference < 1 - level).sum(axis=-1), last)
        usual, low, high = (_at(reference, place + by) for by in (0, -1, 1))
        exact = place + later
        below = np.floor(exact).astype(int)
        own = _at(functions, below)
        own = own + (_at(functions, below + 1) - own) * (exact - below)
        # Counted is on which side there is less.
        sign = 1 if level <= 0.5 else -1
        ours, theirs = (values * (1 - one if sign > 0 else one) for one in (own, usual))
        slope = values * (high - low) / 2 / (_STEP * _COARSE)
        least = np.fmax(np.sqrt(np.maximum(theirs, _NONE)), slope * floor)
        error = least / np.sqrt((theirs + 1) * (1 + _RELATIVE * theirs))
        yield sign * (_stretched(ours) - _stretched(theirs)), error


def states(functions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return what ``functions`` ``(windows, n)`` of ``blurred`` are like, ``(levels + 1, windows)``, in octaves.

    Where each of ``LEVELS`` lies, NaN where that is a matter of chance, and how many ``values`` ``(windows,)`` there
    are.
    """
    places = np.stack([(functions < 1 - level).sum(axis=-1) / PER_OCTAVE for level in LEVELS])
    places[np.multiply.outer(LEVELS, values) < LEAST_VALUES] = np.nan
    return np.concatenate([places, np.log2(1 + values)[None]])


def one_more(values: np.ndarray) -> np.ndarray:
    """Return the scatter that chance makes where ``values`` ``(…)`` are counted, of each level, ``(…, levels)``.

    On the scale of ``beyond``, and 1 where hardly any is beyond: one that is there is no surprise.
    """
    counted = values[..., None] * np.minimum(LEVELS, 1 - np.array(LEVELS))
    return np.asarray(1 / np.sqrt(1 + _RELATIVE * counted))


def _stretched(counts: np.ndarray) -> np.ndarray:
    """Return numbers of values on a scale on which chance scatters them by 1 where they are few, as √ does.

    Where they are many, that is little beside what differs from time to time in proportion, for which log is the scale.
    """
    few = np.arcsinh(np.sqrt(_RELATIVE * (np.maximum(counts, 0) + 3 / 8)))
    return np.asarray(2 * few / np.sqrt(_RELATIVE))


def _at(functions: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return functions ``(…, n)`` at ``places`` ``(…)``; beyond their ends what they are there."""
    size = functions.shape[-1]
    starts = np.arange(places.size).reshape(places.shape) * size
    return np.asarray(functions.reshape(-1)[starts + np.clip(places, 0, size - 1)])
