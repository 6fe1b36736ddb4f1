"""Since when a node deviates: the likelihood of "since the start" beside that of "since this window", for each.

A window of a node is either as usual or deviating; before the onset it is usual but for bursts, and after it deviates
all the time, or now and then. The onset is told where enough of the probability is about one window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracer.compare.robust import medians

__all__ = ["UNKNOWN", "Onset", "onset_of"]

# A window says at most so much (nats): it may be a burst, of which there are so many.
_CLIP, _BURSTS = 4.0, 0.03
# After the onset so many windows deviate: all, or about every other.
_DEVIATING = (0.97, 0.5)
# Before anything is known a node deviates from the start in so many cases.
_FROM_START = 0.3
# From so many windows on a node's own habit is known.
_LEAST = 4
#: Onsets so close to each other are the same one, which is told where it is that probable.
ABOUT = 2
SURE = 0.8


class Onset(NamedTuple):
    """The most probable window, 0 where it is the start, and how probable one within ``ABOUT`` of it is."""

    window: int
    probability: float

    @property
    def sure(self) -> bool:
        """Whether it may be told."""
        return self.probability >= SURE


UNKNOWN = Onset(0, 0.0)


def onset_of(deviations: np.ndarray, sigma: np.ndarray, spread: float, size: float) -> Onset:
    """Return since when one node deviates by ``size`` beyond what it does anyway, of ``deviations`` ``(windows,)``.

    ``sigma`` ``(windows,)`` is their scatter, ``spread`` what nodes differ by anyway. NaN is not known.
    """
    windows = len(deviations)
    if np.isnan(deviations).all():
        return UNKNOWN
    logs = np.full(windows, -np.inf)
    for begin in range(max(1, windows - _LEAST + 1)):
        # What began while nothing is known shows from the next window on.
        if begin and np.isnan(deviations[begin]):
            continue
        usual = _usual(deviations[:begin], sigma[:begin], spread)
        away = (deviations - usual) / sigma
        # More than expected is not less like it.
        beyond = np.minimum((deviations - usual - size) / sigma, 0)
        says = np.nan_to_num(np.clip((away**2 - beyond**2) / 2, -_CLIP, _CLIP))
        ratios = np.exp(says)
        before = np.log1p(_BURSTS * (ratios[:begin] - 1)).sum()
        after = max(np.log1p(share * (ratios[begin:] - 1)).sum() for share in _DEVIATING)
        # A node may differ by much more than most do, and a habit that was taken off may have been its fault.
        logs[begin] = before + after - np.log1p((usual / spread) ** 2)
    logs[0] += np.log(_FROM_START)
    logs[1:] += np.log((1 - _FROM_START) / max(windows - 1, 1))
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    # The start is not just another window.
    groups = [chances[0], *(chances[max(1, one - ABOUT) : one + ABOUT + 1].sum() for one in range(1, windows))]
    return Onset(int(chances.argmax()), float(groups[int(chances.argmax())]))


def _usual(deviations: np.ndarray, sigma: np.ndarray, spread: float) -> float:
    """Return by how much a node differs anyway, by the windows before, as far as they tell it."""
    known = ~np.isnan(deviations)
    if not known.any():
        return 0.0
    middle = float(medians(deviations[known]))
    chance = float(medians(sigma[known])) ** 2 * np.pi / 2 / known.sum()
    return float(middle * spread**2 / (spread**2 + chance))
