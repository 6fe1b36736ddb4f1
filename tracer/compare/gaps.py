"""Where nothing was recorded between two intervals: the agent was down, or the recorder had no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.analysis.source import Source
from tracer.units import duration, many, moment
from tracer.window import Window

__all__ = ["Gaps"]

#: What is shorter, in intervals and ns, is lateness.
_INTERVALS: Final = 3
_LEAST_NS: Final = 2_000_000_000


class Gaps:
    """The gaps of a recording of which one interval of ``every`` so many is given."""

    def __init__(self, source: Source, every: int = 1) -> None:
        self._source = source
        self._least_ns = max(_LEAST_NS, _INTERVALS * every * source.interval_ns)
        self._end_ns = self._total_ns = self._number = 0
        self._longest = (0, 0)

    def before(self, windows: Sequence[Window]) -> int:
        """Return for how many ns nothing was recorded before an interval; 0 where it follows the one before."""
        start_ns = min(window.start_ns for window in windows)
        gap_ns = start_ns - self._end_ns if self._end_ns else 0
        began_ns, self._end_ns = self._end_ns, max(self._end_ns, *(window.end_ns for window in windows))
        if gap_ns < self._least_ns:
            return 0
        self._number += 1
        self._total_ns += gap_ns
        self._longest = max(self._longest, (gap_ns, began_ns))
        return gap_ns

    def remarks(self) -> list[str]:
        """Say that there are any, how long, and since when the longest."""
        if not self._number:
            return []
        began = self._source.unix_ns(self._longest[1])
        when = f" from {moment(began)} on" if began == began else ""
        if self._number == 1:
            return [f"nothing was recorded for {duration(self._total_ns)}{when}"]
        longest = f"the longest for {duration(self._longest[0])}{when}"
        return [f"nothing was recorded in {many(self._number, 'gap')}, {duration(self._total_ns)} in all, {longest}"]
