"""What the live view shows: the last interval, the last few together, and where in a recording it stands."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import Verdict, judge
from tracer.reports import json
from tracer.window import Window

__all__ = ["RECENT", "SORTS", "TopState"]

RECENT = 10
SORTS = ("wait", "softirq", "busy", "cpu")


@dataclass
class TopState:
    """Fed with one interval after the other; ``render`` in ``tracer.reports.top`` draws it.

    Attributes:
        last: the latest interval alone; ``recent``: the latest ten together; ``verdict`` judges those.
        position: in a recording, e.g. ``"12 of 60"``; empty for a live view.
        message: one line for the user, such as the end of a recording.
    """

    source: Source = field(default_factory=Source)
    sort: str = SORTS[0]
    paused: bool = False
    position: str = ""
    message: str = ""
    last: Summary = field(default_factory=Summary)
    recent: Summary = field(default_factory=Summary)
    verdict: Verdict = field(default_factory=lambda: judge(Summary()))
    _intervals: deque[list[Window]] = field(default_factory=lambda: deque(maxlen=RECENT))

    def push(self, windows: Sequence[Window]) -> None:
        """Show one more interval."""
        self._intervals.append(list(windows))
        self._rebuild()

    def show(self, intervals: Sequence[Sequence[Window]]) -> None:
        """Show these intervals instead, the last one of them being the current: stepping through a recording."""
        self._intervals = deque((list(windows) for windows in intervals[-RECENT:]), maxlen=RECENT)
        self._rebuild()

    def next_sort(self) -> None:
        """Order the CPUs by the next column."""
        self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]

    def as_dict(self) -> dict[str, Any]:
        """Return the same state as a tree for ``reports.json.dumps``."""
        return {
            "schema": "foreshock.top/1",
            "interval": json.as_dict(self.last, judge(self.last), self.source),
            "recent": json.as_dict(self.recent, self.verdict, self.source),
        }

    def _rebuild(self) -> None:
        self.last, self.recent = (Summary(self.source.interval_ns, self.source) for _ in range(2))
        for windows in self._intervals:
            self.recent.add_interval(windows)
        if self._intervals:
            self.last.add_interval(self._intervals[-1])
        self.verdict = judge(self.recent)
