"""Which threads were blocked when the recording ended: waits that no wake-up has told of.

Each is one row of the last interval, with all of its time. A part of the recording has its part of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tracer.analysis.rows import has, text

__all__ = ["Still", "StillBlocked", "are_still", "part_ns"]

#: Who is in D for less may well be waiting for a disk.
_LONG_NS = 1_000_000_000
_MOST = 64
_NEVER = 1 << 62  # ns: a hundred years


class StillBlocked(NamedTuple):
    """A thread, and for how long it had been blocked: at least so long if since before the recording."""

    comm: str
    pid: int
    tid: int
    blocked_ns: int
    all_along: bool


class Still:
    """``threads`` that were blocked, and ``uninterruptible``: those in D for a second or longer, longest first."""

    def __init__(self) -> None:
        self.threads = 0
        self.uninterruptible: list[StillBlocked] = []

    def add(self, samples: np.ndarray) -> None:
        """Add a window's rows of ``offcpu.samples``; only the last one has such."""
        if not (has(samples, "waker_kind") and has(samples, "state")):
            return
        still = samples[are_still(samples)]
        self.threads += len(np.unique(still["tid"]))
        long = still[(still["state"] == b"D") & (still["weight"] >= _LONG_NS)]
        found = [
            StillBlocked(text(row["comm"]), int(row["pid"]), int(row["tid"]), int(row["weight"]), kind == b"a")
            for row, kind in zip(long, long["waker_kind"].tolist(), strict=True)
        ]
        self.uninterruptible = sorted([*self.uninterruptible, *found], key=lambda one: -one.blocked_ns)[:_MOST]


def are_still(samples: np.ndarray) -> np.ndarray:
    """Return which rows of ``offcpu.samples`` are blocks that had not ended, shape ``(n,)``."""
    if not has(samples, "waker_kind"):
        return np.zeros(len(samples), bool)
    return np.isin(samples["waker_kind"], (b"o", b"a"))


def part_ns(weights: np.ndarray, end_ns: int, start_ns: float, stop_ns: float) -> np.ndarray:
    """Return how much of blocks lies between two moments: of those ``weights`` ns long, up to ``end_ns``.

    Shapes ``(n,)``. Parts that follow each other add up to the whole.
    """
    whole = np.minimum(weights.astype(np.uint64), np.uint64(_NEVER)).astype(np.int64)
    longest, shortest = (int(min(max(end_ns - moment, 0), _NEVER)) for moment in (start_ns, stop_ns))
    part: np.ndarray = np.minimum(whole, longest) - np.minimum(whole, shortest)
    return part
