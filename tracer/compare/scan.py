"""Find the stretch of windows in which a node deviates from the others, beyond the noise of the windows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb, erfc, sqrt

import numpy as np

from tracer.compare.phases import split, summed, within
from tracer.compare.robust import medians, scatter

__all__ = ["CLIP", "LEAST_WINDOWS", "Stretch", "baseline_of", "extended", "noise", "persists", "scan", "step_noise"]

#: Persistence: shorter deviations are bursts, which every node has. Minder's precision fell from 0.90 to 0.76 without.
LEAST_WINDOWS = 4
# Bursts in so many of all windows would make as many windows of one stretch deviate as rarely as this.
_BURSTS, _RARELY = 0.03, 2e-7
#: The first part of a recording is the node's own baseline, if it leaves enough to compare with it.
_BASELINE = 1 / 3
_LEAST_BASELINE = 3
#: One window, however bad, is at most this many sigmas, and enough of them have to be beyond one of _EACH: bursts are
#: neither long nor many.
CLIP = 10.0
_EACH = (3.0, 2.0)
_NOTHING = 1e-30


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


def scan(
    deviations: np.ndarray,
    sigma: np.ndarray,
    baseline: int,
    unsure: np.ndarray | float = 0.0,
    clip: float = CLIP,
    alike: float = 0.0,
    phases: np.ndarray | int = 0,
) -> Stretch:
    """Return each node's worst stretch of at least ``LEAST_WINDOWS`` windows after the ``baseline``.

    ``deviations`` ``(nodes, windows)`` are less each node's own baseline, if there is one, of which ``unsure``
    ``(nodes,)`` is the standard error; ``sigma`` is of the shape of ``deviations``, or of the windows'.
    Windows that are NaN count nothing, others at most ``clip`` sigmas; all of a node and of one of the ``phases``
    ``(windows,)`` may be off together by ``alike`` sigmas. The score is -inf of nodes without such a stretch.
    """
    sigma = np.broadcast_to(sigma, deviations.shape)
    every = np.clip(deviations / sigma, -clip, clip)
    scores = every[:, baseline:]
    nodes, windows = scores.shape
    whole = Stretch(np.full(nodes, -np.inf), np.zeros(nodes, int), np.zeros(nodes, int))
    # Few nodes have enough windows that deviate, wherever they are.
    enough = ((scores > each).sum(axis=1) >= _fewest(windows, each) for each in _EACH)
    places = np.flatnonzero(np.any([*enough], axis=0))
    if not places.size:
        return whole
    scores = scores[places]
    known = ~np.isnan(scores)
    groups = [*split(every[places], sigma[places], phases, baseline, np.broadcast_to(unsure, nodes)[places])]
    exceeding = {each: summed(known & (scores > each)) for each in _EACH}
    rows = np.arange(len(places))
    for length in range(LEAST_WINDOWS, windows + 1):
        sums, variances = zip(*(one.told(length, alike) for one in groups), strict=True)
        value = sum(sums) / np.sqrt(np.maximum(sum(variances), _NOTHING))
        lasts = [within(beyond, length) >= _persistent(length, each) for each, beyond in exceeding.items()]
        value[~np.any(lasts, axis=0)] = -np.inf
        place = value.argmax(axis=1)
        found = value[rows, place]
        better = found > whole.score[places]
        chosen = places[better]
        whole.score[chosen] = found[better]
        whole.begin[chosen], whole.end[chosen] = place[better] + baseline, place[better] + length + baseline
    return whole


def persists(scores: np.ndarray) -> np.ndarray:
    """Return which nodes deviate in more of all windows than bursts do, of ``scores`` ``(nodes, windows)`` in sigmas.

    In all, where there are too few for that.
    """
    known = (~np.isnan(scores)).sum(axis=1)
    enough = [
        (scores > each).sum(axis=1) >= np.array([min(_persistent(one, each), max(one, 1)) for one in known.tolist()])
        for each in _EACH
    ]
    return np.asarray(np.any(enough, axis=0))


@cache
def _persistent(windows: int, each: float) -> int:
    """Return how many of so many windows bursts don't lift beyond so many sigmas, together with chance."""
    share = _BURSTS + erfc(each / sqrt(2))
    rarely = (sum(_chance(windows, more, share) for more in range(least, windows + 1)) for least in range(windows + 1))
    return next((least for least, chance in enumerate(rarely) if chance < _RARELY), windows + 1)


@cache
def _fewest(windows: int, each: float) -> int:
    """Return how many windows beyond so many sigmas any stretch within so many windows needs."""
    return min((_persistent(length, each) for length in range(LEAST_WINDOWS, windows + 1)), default=windows + 1)


def _chance(windows: int, bursts: int, share: float) -> float:
    return comb(windows, bursts) * share**bursts * (1 - share) ** (windows - bursts)


def extended(deviations: np.ndarray, sigma: np.ndarray, begin: int, end: int, baseline: int) -> tuple[int, int]:
    """Return a stretch of one node's windows together with those beside it that deviate as well."""
    beyond = deviations > max(_EACH) * sigma
    while begin > baseline and beyond[begin - 1]:
        begin -= 1
    while end < len(beyond) and beyond[end]:
        end += 1
    return begin, end
