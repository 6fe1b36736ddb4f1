"""The one value that every stage after the kernel accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Window"]


@dataclass(frozen=True)
class Window:
    """What one table of one probe saw between two moments.

    A live run, a replayed recording and a frame from another node all arrive as windows.

    Attributes:
        probe: name of the probe, e.g. ``"softirq"``.
        table: name of its table, e.g. ``"run"``. ``(probe, table)`` names a ``Table`` declared by the probe.
        start_ns, end_ns: the interval, nanoseconds of CLOCK_MONOTONIC of the node it came from.
        rows: structured array, shape ``(n,)``. A histogram is two fields: ``sum`` (u8, in the
            histogram's integer unit, ns for time) and ``slots`` (u4, shape ``(HIST_SLOTS,)``).
            Counters and histograms are differences over the interval, gauges the value at its end.
        losses: what this table missed in the interval, by reason; a reason that was watched and did
            not happen is present with 0, a reason that can't be watched is absent.
    """

    probe: str
    table: str
    start_ns: int
    end_ns: int
    rows: np.ndarray
    losses: Mapping[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Length of the interval in seconds."""
        return (self.end_ns - self.start_ns) / 1e9
