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
        self._used = live[used] if used else None
        self.before = np.zeros_like(live)
        self.after = np.zeros_like(live)
        # As bytes: numpy copies structs member by member.
        self._live, self._copy, self._older = (_bytes(rows) for rows in (live, self.after, self.before))
        self.start_ns = self.end_ns = time.monotonic_ns()
        self.rows: npt.NDArray[np.intp] = np.arange(0 if used else len(live))

    def take(self) -> None:
        """Copy the live rows; what was ``after`` becomes ``before``."""
        self.before, self.after = self.after, self.before
        self._copy, self._older = self._older, self._copy
        self.start_ns = self.end_ns
        if self._used is None:
            np.copyto(self._copy, self._live)
        else:
            # Rows are given out for good, so each stays in every later snapshot.
            self.rows = np.flatnonzero(self._used)
            self._copy[self.rows] = self._live[self.rows]
        self.end_ns = time.monotonic_ns()

    def total(self, path: str) -> int:
        """Return the sum of a counter in ``after``, modulo its width."""
        counts = member(self.after, path)
        return int((counts if self._used is None else counts[self.rows]).sum())


def member(rows: np.ndarray, path: str) -> np.ndarray:
    """Return a member that may lie in an embedded struct: ``"limit.suppressed"``."""
    for name in path.split("."):
        rows = rows[name]
    return rows


def _bytes(rows: np.ndarray) -> np.ndarray:
    return rows.view(f"V{rows.dtype.itemsize}")
