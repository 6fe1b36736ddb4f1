"""One side of a difference: a recording, or a part of one."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.analysis.summary import Summary
from tracer.compare.node import Node

__all__ = ["Side"]


@dataclass(frozen=True)
class Side:
    """What was read of one side.

    ``name`` is of its file; ``start_ns`` and ``end_ns`` are of the node's monotonic clock. ``node`` has its numbers by
    window, ``summary`` all of them together.
    """

    name: str
    node: Node
    summary: Summary
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """How long was seen."""
        return float(self.node.seen_ns.sum()) / 1e9
