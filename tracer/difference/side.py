"""One side of a difference: a recording, or a part of one."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.analysis.summary import Summary
from tracer.compare.node import Node
from tracer.units import SECOND

__all__ = ["Side", "Span"]

#: From when to when, in ns on a node's clock or in seconds.
Span = tuple[float, float]


@dataclass(frozen=True)
class Side:
    """What was read of one side.

    ``name`` is of its file; ``start_ns`` and ``end_ns`` are of the node's monotonic clock. ``node`` has its numbers by
    window, ``summary`` all of them together. ``gaps`` are (when, how long) in ns in which nothing was recorded: left
    out of the windows, and of ``when``. ``damaged``: it goes on behind what could be read. ``cut``: it ends where
    whoever recorded it was killed, or has not ended yet; what came then is not known.
    """

    name: str
    node: Node
    summary: Summary
    start_ns: int
    end_ns: int
    gaps: tuple[tuple[int, int], ...] = ()
    damaged: bool = False
    cut: bool = False

    def clock_ns(self, span: Span) -> Span:
        """Return from when to when on the node's clock a span of its windows is, given in seconds of windows."""
        half_ns = self.node.length_ns / 2  # a gap begins within half a window of an end
        start_ns, end_ns = (self.start_ns + seconds * SECOND for seconds in span)
        return self._passed_ns(start_ns + half_ns) - half_ns, self._passed_ns(end_ns - half_ns) + half_ns

    def _passed_ns(self, ns: float) -> float:
        return ns + sum(gap_ns for at_ns, gap_ns in self.gaps if at_ns <= ns)

    @property
    def seconds(self) -> float:
        """How long was seen."""
        return float(self.node.seen_ns.sum()) / SECOND
