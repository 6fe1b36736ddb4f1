"""Find the stretch of windows in which a node deviates from the others, beyond the noise of the windows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from tracer.compare.robust import medians, scatter

__all__ = ["CLIP", "LEAST_WINDOWS", "Stretch", "baseline_of", "extended", "noise", "scan", "step_noise"]

#: Persistence: shorter deviations are bursts, which every node has. Minder's precision fell from 0.90 to 0.76 without.
LEAST_WINDOWS = 4
# Bursts in so many of all windows would make as many windows of one stretch deviate as rarely as this.
_BURSTS, _RARELY = 0.03, 1e-6
#: The first part of a recording is the node's own baseline, if it leaves enough to compare with it.
_BASELINE = 1 / 3
_LEAST_BASELINE = 3
#: One window, however bad, is at most this many sigmas, and enough of them have to be beyond _EACH: bursts are neither
#: long nor many.
CLIP = 10.0
_EACH = 3.0


@dataclass(frozen=True)
class Stretch:
    """Per node: how sure (sigmas of a sum of clipped windows) and from which window to which, shape ``(nodes,)``."""

    score: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def baseline_of(windows: int) -> int:
    """Return how many windows at the beginning are the baseline; 0 when there are too few."""
    size = int(windows * _BASELINE)
    return size if size >= _LEAST_BASELINE and windows - size >= LEAST_WINDOWS else 0


def step_noise(deviations: np.ndarray, floor: float) -> float:
    """Return what ``deviations`` ``(nodes, windows)`` scatter from one window to the next; at least ``floor``."""
    steps = np.diff(deviations, axis=1)
    return float(np.fmax(scatter(steps.ravel()) / np.sqrt(2), floor))


def noise(deviations: np.ndarray, floor: float) -> np.ndarray:
    """Return what nodes scatter in each window, shape ``(windows,)``, of ``deviations`` ``(nodes, windows)``.

    At least ``floor``. Per window: between two phases of a job nodes differ by much more than within one.
    """
    found: np.ndarray = np.fmax(scatter(deviations - medians(deviations)), floor)
    return found


def scan(deviations: np.ndarray, sigma: np.ndarray, baseline: int) -> Stretch:
    """Return each node's worst stretch of at least ``LEAST_WINDOWS`` windows after the ``baseline``.

    ``deviations`` ``(nodes, windows)`` are less each node's own baseline, if there is one, whose noise counts as well;
    ``sigma`` is of the same shape, or of the windows'.
    Windows that are NaN count nothing.
    """
    scores = np.clip((deviations / sigma)[:, baseline:], -CLIP, CLIP)
    known = ~np.isnan(scores)
    sums = _summed(np.where(known, scores, 0))
    counts, beyond = _summed(known.astype(float)), _summed((known & (scores > _EACH)).astype(float))
    nodes, windows = scores.shape
    best = np.full(nodes, -np.inf)
    begin, end = np.zeros(nodes, int), np.zeros(nodes, int)
    for length in range(LEAST_WINDOWS, windows + 1):
        size = counts[:, length:] - counts[:, :-length]
        # The median of so many baseline windows is itself off, by the same in all windows of the stretch.
        variance = size + (size**2 * (np.pi / 2) / baseline if baseline else 0)
        value = (sums[:, length:] - sums[:, :-length]) / np.sqrt(np.maximum(variance, 1))
        value[beyond[:, length:] - beyond[:, :-length] < _persistent(length)] = -np.inf
        place = value.argmax(axis=1)
        found = value[np.arange(nodes), place]
        better = found > best
        best = np.where(better, found, best)
        begin, end = np.where(better, place, begin), np.where(better, place + length, end)
    return Stretch(best, begin + baseline, end + baseline)


@cache
def _persistent(windows: int) -> int:
    """Return how many of so many windows bursts don't make."""
    rarely = (sum(_chance(windows, more) for more in range(least, windows + 1)) for least in range(windows + 1))
    return next((least for least, chance in enumerate(rarely) if chance < _RARELY), windows)


def _chance(windows: int, bursts: int) -> float:
    return comb(windows, bursts) * _BURSTS**bursts * (1 - _BURSTS) ** (windows - bursts)


def extended(deviations: np.ndarray, sigma: np.ndarray, begin: int, end: int, baseline: int) -> tuple[int, int]:
    """Return a stretch of one node's windows together with those beside it that deviate as well."""
    beyond = deviations > _EACH * sigma
    while begin > baseline and beyond[begin - 1]:
        begin -= 1
    while end < len(beyond) and beyond[end]:
        end += 1
    return begin, end


def _summed(values: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
