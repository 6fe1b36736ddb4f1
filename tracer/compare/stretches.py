"""Since when each rank of one job sleeps while its peers run, or runs while they sleep, window by window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Stretches", "asleep", "at_work", "flags", "last"]

#: So many peers tell what a rank usually does.
LEAST_PEERS = 3
#: Awake for a tenth of what its peers are; of peers that hardly are nobody hangs.
_TENTH, _LEAST_AWAKE, _BUSY = 0.1, 0.2, 0.5
_YES, _NO, _UNKNOWN = 1, 0, -1
#: Of a stretch's windows so many have to be of its kind, and it has to be so many windows long. It goes back beyond a
#: window that is not for more than so many that are.
_MOST, LEAST_WINDOWS, _WORTH = 0.9, 4, 3
#: What comes after so few windows may have been so before them: the first one is mostly a part.
_EARLY = 2
#: Nobody of the job may have come out of a stretch of half its length: that is the job's manner.
_UNUSUAL = 2


@dataclass(frozen=True)
class Stretches:
    """Per rank, shape ``(ranks,)``: the window that its last stretch begins with, -1 for none.

    ``windows`` is how many of it could be judged, ``early`` whether it lasts from the start.
    """

    begin: np.ndarray
    windows: np.ndarray
    early: np.ndarray


def at_work(shares: np.ndarray) -> np.ndarray:
    """Return which ranks are awake, of shares of the time ``(ranks,)``."""
    found: np.ndarray = shares >= _LEAST_AWAKE
    return found


def asleep(shares: np.ndarray) -> np.ndarray | None:
    """Return which ranks sleep beside those that are awake; None where that can't be told."""
    awake = shares[at_work(shares)]
    if len(shares) <= LEAST_PEERS or not awake.size:
        return None
    usual = float(np.median(awake))
    found: np.ndarray = shares <= _TENTH * usual
    # Few that are awake now and then say nothing about all the others.
    return None if awake.size <= found.sum() and usual < _BUSY else found


def flags(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whether ranks wait, and whether one runs for whom all the others wait, per window.

    ``shares`` of the time that each was awake are ``(ranks, windows)``, NaN where unknown; so are the flags: 1 yes, 0
    no, -1 can't be told.
    """
    waits, runs = np.full(shares.shape, _UNKNOWN, np.int8), np.full(shares.shape, _UNKNOWN, np.int8)
    for window in range(shares.shape[1]):
        known = np.flatnonzero(~np.isnan(shares[:, window]))
        sleeping = asleep(shares[known, window])
        if sleeping is None:
            continue
        alone = sleeping.sum() == len(known) - 1
        runs[known, window] = ~sleeping if alone else _NO
        # Who they all wait for is awake; whether they should be, nobody knows.
        waits[known, window] = np.where(sleeping, _UNKNOWN, _NO) if alone else sleeping
    return waits, runs


def last(flagged: np.ndarray) -> Stretches:
    """Return the stretches that go on at the end, and are longer than what the job's ranks come out of."""
    ranks, windows = flagged.shape
    begin, judged = np.full(ranks, -1), np.zeros(ranks, int)
    yes, known, best = np.zeros(ranks, int), np.zeros(ranks, int), np.zeros(ranks, int)
    for window in range(windows - 1, -1, -1):
        now = flagged[:, window]
        yes += now == _YES
        known += now != _UNKNOWN
        score = yes - _WORTH * (known - yes)
        # Whoever did otherwise last has come out of it.
        further = (score > best) & (yes >= _MOST * known) & ((begin >= 0) | (yes == known))
        best[further], begin[further], judged[further] = score[further], window, known[further]
    # Who is not there any more does not hang.
    told = np.flatnonzero((flagged != _UNKNOWN).any(axis=0))
    if not told.size:
        return Stretches(begin, judged, np.zeros(ranks, bool))
    begin[(flagged[:, told[-2:]] == _UNKNOWN).all(axis=1)] = -1
    within = (begin >= 0)[:, None] & (np.arange(windows) >= begin[:, None])
    before = ((flagged != _UNKNOWN) & ~within).sum(axis=1)
    least = max(min(LEAST_WINDOWS, windows), _UNUSUAL * _longest_over(np.where(within, _UNKNOWN, flagged)))
    begin[judged < least] = -1
    return Stretches(begin, judged, (begin >= 0) & (before < _EARLY))


def _longest_over(flagged: np.ndarray) -> int:
    """Return the length of the longest stretch that has ended."""
    running, longest = np.zeros(len(flagged), int), 0
    for now in flagged.T:
        longest = max(longest, int(running[now == _NO].max(initial=0)))
        running = np.where(now == _YES, running + 1, np.where(now == _NO, 0, running))
    return longest
