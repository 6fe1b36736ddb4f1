"""Two snapshots of a live map, so that an interval is their difference."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

__all__ = ["Snapshots", "member"]


class Snapshots:
    """The latest two copies of one mapped array.

    ``used`` names a member that is 0 in rows never given out: such rows are not copied, which on a big node is
    most of the memory. ``before`` and ``after`` were taken at ``start_ns`` and ``end_ns`` (CLOCK_MONOTONIC).
    """

    def __init__(self, live: np.ndarray, used: str = "") -> None:
        self._live = live
        self._used = used
        self.before = np.zeros_like(live)
        self.after = np.zeros_like(live)
        self.start_ns = self.end_ns = time.monotonic_ns()
        self.rows: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def take(self) -> None:
        """Copy the live rows; what was ``after`` becomes ``before``."""
        self.before, self.after = self.after, self.before
        self.start_ns = self.end_ns
        if self._used:
            # Rows are given out for good, so each stays in every later snapshot.
            self.rows = np.flatnonzero(self._live[self._used])
            self.after[self.rows] = self._live[self.rows]
        else:
            self.rows = np.arange(len(self._live))
            np.copyto(self.after, self._live)
        self.end_ns = time.monotonic_ns()


def member(rows: np.ndarray, path: str) -> np.ndarray:
    """Return a member that may lie in an embedded struct: ``"limit.suppressed"``."""
    for name in path.split("."):
        rows = rows[name]
    return rows
