"""What is slower at the end of a side only: within the whole side a change in its middle passes for noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tracer.compare.node import Node
from tracer.difference import limits
from tracer.difference.changes import Change, changes_of

__all__ = ["Late", "late"]


@dataclass(frozen=True)
class Late:
    """``slower``: what is so in the last ``seconds``, as in a Difference."""

    seconds: float
    slower: tuple[Change, ...]


def late(before: Node, after: Node, effect: float) -> Late | None:
    """Return what is slower by a factor ``effect`` or more in the last half of ``after``, else in its last quarter.

    None where nothing is. These are more looks than one, so that more is asked of each.
    """
    for share in limits.ENDS:
        end = _end(after, share)
        if np.count_nonzero(end.seen_ns) < limits.LEAST_BLOCKS:
            return None
        told = changes_of(before, end).told("slower", max(effect, limits.LATE_EFFECT))
        slower = tuple(one for one in told if one.step >= limits.LATE_CARE * one.half)
        if slower:
            return Late(float(end.seen_ns.sum()) / 1e9, slower)
    return None


def _end(node: Node, share: float) -> Node:
    """Return a node of which only the last ``share`` of what was seen counts."""
    seen = np.flatnonzero(node.seen_ns)
    kept = np.zeros_like(node.seen_ns)
    chosen = seen[len(seen) - int(len(seen) * share) :]
    kept[chosen] = node.seen_ns[chosen]
    return replace(node, seen_ns=kept)
