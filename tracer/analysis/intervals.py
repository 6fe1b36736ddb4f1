"""Judge each interval's length: on time, late, or one in which the whole node stood still."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence
from typing import Literal

import numpy as np

from tracer import histogram
from tracer.analysis.rows import has, numbers
from tracer.window import Window

__all__ = ["CLOCK_LATE", "Intervals", "Judgement", "Span", "is_within", "span"]

Judgement = Literal["ok", "late", "paused"]
#: From when to when, ns of the node's monotonic clock.
Span = tuple[float, float]

# An agent at ordinary priority on a busy node is late by tens of ms; half an interval means that it did not run.
LATE_FACTOR = 1.5
# A node that stood still shows an interval that is longer on every table and has the events of a short one.
PAUSE_FACTOR = 3.0
PAUSE_LEAST_NS = 1_000_000_000
_HISTORY = 64
# Below half of the usual events per second the node did not just run on while the tracer was late.
_ACTIVE_SHARE = 0.5
_ENOUGH_EVENTS = 20
# To know what is usual, some are enough: counting a big node's events takes longer than all else here.
_COUNTED_EVERY = 8
CLOCK_LATE = 32  # CPUSTALL_CLOCK_LATE of bpf/cpustall.h, as recordings have it


def span(windows: Sequence[Window]) -> tuple[int, int]:
    """Return from when to when an interval is, one window at least: what most windows span.

    A probe that was attached or read earlier or later than the others spans more, or less.
    """
    starts, ends = ([window.start_ns for window in windows], [window.end_ns for window in windows])
    return sorted(starts)[len(windows) // 2], sorted(ends)[len(windows) // 2]


def is_within(interval: Span, part: Span) -> bool:
    """Return whether an interval belongs to a part of the time: its middle does, or it is longer than the part."""
    whole = interval[0] <= part[0] and part[1] <= interval[1]
    return whole or part[0] <= (interval[0] + interval[1]) / 2 < part[1]


class Intervals:
    """The lengths of all intervals so far, in constant memory.

    ``interval_ns`` is the intended length, 0 when unknown: then the median of those seen is taken.
    """

    def __init__(self, interval_ns: int = 0) -> None:
        self.count = 0
        self.late = 0
        self.paused = 0
        self.paused_ns = 0
        self.longest_pause_ns = 0
        self.gaps = 0
        self.gap_ns = 0
        self.start_ns = 0
        self.end_ns = 0
        self._intended_ns = interval_ns
        self._lengths: deque[int] = deque(maxlen=_HISTORY)
        self._activity: deque[float] = deque(maxlen=_HISTORY)

    @property
    def typical_ns(self) -> int:
        """The usual length of an interval; 0 before the first."""
        return self._intended_ns or (int(statistics.median(self._lengths)) if self._lengths else 0)

    @property
    def ns(self) -> int:
        """From the start of the first interval to the end of the last."""
        return self.end_ns - self.start_ns

    def judge(self, windows: Sequence[Window]) -> Judgement:
        """Count the interval that ``windows`` share, and say what it was."""
        # "On every table": one late table alone is late reading, not a pause.
        length = min(window.end_ns - window.start_ns for window in windows)
        self._count(min(window.start_ns for window in windows), max(window.end_ns for window in windows))
        typical = self.typical_ns or length
        judgement = self._judge(windows, length, typical)
        if judgement == "paused":
            self.paused += 1
            self.paused_ns += length
            self.longest_pause_ns = max(self.longest_pause_ns, length)
            return judgement
        self.late += judgement == "late"
        self._lengths.append(length)
        if length > 0 and (len(self._activity) < _COUNTED_EVERY or self.count % _COUNTED_EVERY == 0):
            self._activity.append(_events(windows) / length)
        return judgement

    def _judge(self, windows: Sequence[Window], length: int, typical: int) -> Judgement:
        if length > PAUSE_FACTOR * typical and length > typical + PAUSE_LEAST_NS and not _stalled(windows):
            usual = statistics.median(self._activity) if self._activity else 0.0
            expected = usual * length
            if expected < _ENOUGH_EVENTS or _events(windows) < _ACTIVE_SHARE * expected:
                return "paused"
        return "late" if length > LATE_FACTOR * typical else "ok"

    def _count(self, start_ns: int, end_ns: int) -> None:
        if self.count == 0:
            self.start_ns = start_ns
        elif start_ns - self.end_ns > max(self.typical_ns, 1) / 2:
            self.gaps += 1
            self.gap_ns += start_ns - self.end_ns
        self.count += 1
        self.end_ns = max(self.end_ns, end_ns)


def _stalled(windows: Sequence[Window]) -> bool:
    """Return whether a CPU showed more of a stall than a clock that came late, which a pause shows as well."""
    tables = [window.rows for window in windows if (window.probe, window.table) == ("cpustall", "stalls")]
    return any(bool(np.any(numbers(rows, "evidence", CLOCK_LATE).astype(int) & ~CLOCK_LATE)) for rows in tables)


def _events(windows: Sequence[Window]) -> int:
    return sum(int(histogram.count(window.rows["slots"]).sum()) for window in windows if has(window.rows, "slots"))
