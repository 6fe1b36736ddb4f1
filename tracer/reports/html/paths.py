"""What of each stack a flame graph shows: not the innermost frames that say nothing, and at times one more outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracer.analysis.frames import Frame, Paths

__all__ = ["beginning_with", "shown_lengths"]


def shown_lengths(told: Paths, hidden: Callable[[Frame], bool]) -> np.ndarray:
    """Return how many frames of each stack are shown: not the innermost ones that say nothing, but one at least."""
    stack = np.repeat(np.arange(len(told.lengths)), told.lengths)
    place = np.arange(len(stack)) - (np.cumsum(told.lengths) - told.lengths)[stack]
    shown = np.array([not hidden(frame) for frame in told.frames], bool)[told.numbers]
    lengths: np.ndarray = np.minimum(told.lengths, 1)
    np.maximum.at(lengths, stack[shown], place[shown] + 1)
    return lengths


def beginning_with(
    firsts: np.ndarray, path: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the frames of all paths, each with one more outside, and where each begins."""
    begins = np.cumsum(lengths + 1) - lengths - 1
    which = np.repeat(np.arange(len(starts)), lengths + 1)
    place = np.arange(len(which)) - begins[which]
    return np.where(place > 0, path[starts[which] + np.maximum(place - 1, 0)], firsts[which]), begins
