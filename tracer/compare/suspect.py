"""A node that deviates: in what, since when, what the likely cause is, and how sure all that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracer.compare import limits
from tracer.compare.alignment import Grid
from tracer.compare.cause import likely_cause, ordered
from tracer.compare.deviation import Deviation
from tracer.compare.metrics import Cause
from tracer.compare.node import Node
from tracer.compare.telling import Told

__all__ = ["Confidence", "Detail", "Suspect", "confidence", "suspect"]

Confidence = Literal["high", "medium", "low"]
_SURE, _UNSURE = 1.5, 1.15  # times the score that is needed
_SURE_WINDOWS = 5
_SURE_NS = 60e9
_LOSSY = 0.01


@dataclass(frozen=True)
class Detail:
    """Where and who, as far as seen: ``cpus`` as in ``CPU 3``; ``who`` in sentences with unescaped names.

    ``holder`` and ``pid`` are the task that had the CPU, if it is one; ``usual``: its peers have such a one, or such a
    crew, or as many interrupts, for about as long. ``throttled``: tasks waited for CPUs that were idle, as a CPU quota
    makes them. ``rank`` is the one that waited most, as in ``rank 37 of job 48213``; ``jobs`` what ran there. ``taken``
    is who took more of the ranks' time than on other nodes, with the shares. ``next`` is what to do about it, as the
    summary of that recording says.
    """

    cpus: str = ""
    who: str = ""
    holder: str = ""
    pid: int = 0
    usual: bool = False
    throttled: bool = False
    rank: str = ""
    jobs: str = ""
    taken: str = ""
    next: str = ""


@dataclass(frozen=True)
class Suspect:
    """A node that deviates. ``deviations`` are ordered, what tells most of the cause first.

    ``since_ns`` is UTC; NaN when it is not known, or its windows don't tell. ``lasting``: from the start of the
    recordings on. ``since_window`` is the same as a window; None when it is not told. ``gap_ns``: where nothing was
    recorded right before that, since when; else NaN. ``within_ns``: from when to when
    its first deviation is, by its own recording.
    """

    label: str
    node: Node
    deviations: tuple[Told, ...]
    cause: Cause
    confidence: Confidence
    since_ns: float
    lasting: bool
    since_window: int | None
    within_ns: tuple[int, int]
    gap_ns: float = float("nan")


def suspect(grid: Grid, label: str, place: int, deviations: Sequence[Told]) -> Suspect:
    """Return the node at ``place`` of a grid, called ``label``, with what deviates on it."""
    told = ordered(deviations)
    # What tells it best, of those equally good the first.
    since = max((one.deviation.since for one in told), key=lambda one: one.probability)
    node = grid.nodes[place]
    known = np.flatnonzero(grid.recorded[place, : since.window])
    # What began while nothing was recorded may have begun at any moment of that.
    in_gap = since.sure and node.clocked and known.size and known[-1] + 1 < since.window
    return Suspect(
        label=label,
        node=node,
        deviations=tuple(told),
        cause=likely_cause(told),
        confidence=confidence([one.deviation for one in told], len(grid.nodes), grid.length_ns, node.lost),
        since_ns=grid.own_ns(node, since.window) if since.sure and node.clocked else float("nan"),
        lasting=since.sure and not since.window,
        since_window=since.window if since.sure else None,
        within_ns=(grid.own_ns(node, told[0].deviation.begin), grid.own_ns(node, told[0].deviation.end)),
        gap_ns=grid.own_ns(node, int(known[-1]) + 1) if in_gap else float("nan"),
    )


def confidence(deviations: Sequence[Deviation], nodes: int, length_ns: int, lost: float) -> Confidence:
    """Return how sure a node's deviations among so many ``nodes`` are; ``lost`` is the share of events not seen."""
    best = max(deviations, key=lambda one: one.score)
    # Without a baseline a short recording shows what a node happens to do, not how it is.
    brief = best.lasting and (best.end - best.begin) * length_ns < _SURE_NS
    if nodes < limits.FEW_NODES or best.score < (_SURE if brief else _UNSURE):
        return "low"
    sure = not brief and best.score >= _SURE and best.end - best.begin >= _SURE_WINDOWS and lost <= _LOSSY
    return "high" if sure else "medium"
