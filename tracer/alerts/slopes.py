"""Whether something falls steadily, and how fast: robust slopes of short histories."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["PART", "steady_fall", "still_falls", "theil_sen"]

_Floats = npt.NDArray[np.float64]

#: More points than this do not make a slope better, and there are as many pairs as their square.
_POINTS = 48
_LEAST_POINTS = 6
_PARTS = 4
#: Of the whole's slope, in each part: what starts, stops or comes in bursts is not steady.
PART = 0.5
#: Of the whole fall: half of the points are no further from the line. Teeth of a saw are.
_SPREAD = 0.1


def theil_sen(times: _Floats, values: _Floats) -> float:
    """Return the median of the slopes of all pairs of points. Source: P. K. Sen, JASA 63 (1968)."""
    first, second = np.triu_indices(len(times), 1)
    return float(np.median((values[second] - values[first]) / (times[second] - times[first])))


def steady_fall(times: _Floats, values: _Floats) -> float:
    """Return how fast ``values`` fall per unit of time; 0.0 unless they do so all the time.

    ``times`` rise, shape ``(n,)`` as ``values``. Each quarter has to fall at half the whole's pace at least, so that
    a slope that has stopped is over after a quarter of the span; and most points have to be near the line.
    """
    if len(times) < _LEAST_POINTS or times[-1] <= times[0]:
        return 0.0
    ends, drops = _drops(times, values)
    if drops.min() <= 0:  # which is cheap to see, and nearly always so
        return 0.0
    kept = np.linspace(0, len(times) - 1, min(len(times), _POINTS)).astype(int)
    fall = -theil_sen(times[kept], values[kept])
    rest = values + fall * times
    near = np.median(np.abs(rest - np.median(rest))) <= _SPREAD * fall * (times[-1] - times[0])
    return fall if fall > 0 and near and bool((drops >= PART * fall * np.diff(ends)).all()) else 0.0


def still_falls(times: _Floats, values: _Floats) -> float:
    """Return how fast ``values`` have fallen in the last half of the time; 0.0 unless they fall in each quarter.

    Less than ``steady_fall`` asks: a fall that slows down has not stopped.
    """
    if len(times) < _LEAST_POINTS or times[-1] <= times[0]:
        return 0.0
    ends, drops = _drops(times, values)
    half = _PARTS // 2
    return float(drops[half:].sum() / (ends[-1] - ends[half])) if drops.min() > 0 else 0.0


def _drops(times: _Floats, values: _Floats) -> tuple[_Floats, _Floats]:
    """Return where the quarters end, and by how much ``values`` fall in each."""
    ends = np.linspace(times[0], times[-1], _PARTS + 1)
    return ends, -np.diff(np.interp(ends, times, values))
