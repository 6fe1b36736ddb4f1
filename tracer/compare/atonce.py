"""Nodes that changed at once, too many of them to be single nodes' faults, and who goes far beyond what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tracer.compare import limits
from tracer.compare.robust import mad, medians, scatter
from tracer.compare.scan import LEAST_WINDOWS

__all__ = ["Together", "at_once", "most_at_once", "outstanding"]

# A node may go beyond what many do that is known by more than so many of the windows since then.
_KNOWN = 0.5
# What most rise by is beyond so many standard errors.
_RISEN = 3.0


class Together(NamedTuple):
    """Nodes that changed at once, by how much (logarithms), and from which window on: none where too few did.

    ``many``: more than ``limits.COMMON_SHARE`` of all changed, at whatever time. ``lasting``: they did not change, but
    are of another kind than the rest from the start on.
    """

    changes: Mapping[int, float] = {}
    onset: int = 0
    many: bool = False
    lasting: bool = False


def at_once(
    values: np.ndarray,
    slower: Mapping[int, int],
    faster: Mapping[int, int],
    baseline: int,
    phases: np.ndarray | int,
    floor: float,
) -> Together:
    """Return which nodes became slower together.

    ``values`` ``(nodes, windows)`` are logarithms. ``slower`` and ``faster`` say of nodes that seem to have become so
    beside the others from which window on: where most become slower, the others seem to have become faster. ``phases``
    ``(windows,)`` are the job's; ``floor`` is the least sigma.
    """
    step, least = np.log2(limits.EFFECT), limits.COMMON_SHARE * len(values)
    many = len({*slower, *faster}) > least
    away = values - medians(values)
    for nodes in (slower, faster):
        alike = most_at_once(nodes)
        # A few that seem to become faster may be those that did not become slower.
        if not alike or (nodes is slower and len(alike) <= least):
            continue
        onset = int(np.median([nodes[node] for node in alike]))
        after = away[:, onset:]
        beside = medians(after, 1) - medians(away[:, :baseline], 1)
        known = (~np.isnan(after)).sum(axis=1)
        beside[known <= LEAST_WINDOWS] = np.nan
        rest = [node for node in range(len(values)) if (node in nodes) is (nodes is faster)]
        changes = beside - medians(beside[rest])
        alike = [node for node in np.flatnonzero(changes >= step).tolist() if node not in rest]
        # Of few windows one burst or two are half: who is known by no more is told by what the others are.
        brief = known <= _KNOWN * after.shape[1]
        changes = np.where(brief, np.fmin(changes, medians(changes[alike])), changes)
        if least < len(alike) < len(values) and (nodes is slower or _rise(values, onset, phases, floor) >= step):
            return Together({node: float(changes[node]) for node in alike}, onset, many)
    return Together(many=many)


def most_at_once(begins: Mapping[int, int]) -> list[int]:
    """Return the most nodes of which all begin within ``LEAST_WINDOWS`` windows."""
    groups = ([node for node, other in begins.items() if 0 <= other - one < LEAST_WINDOWS] for one in begins.values())
    return max(groups, key=len, default=[])


def outstanding(changes: Mapping[int, float]) -> dict[int, float]:
    """Return the nodes that changed by far more than those that changed with them, and how sure that is.

    ``changes`` are logarithms; sure is a multiple of what is needed.
    """
    if not changes:
        return {}
    values = np.array(list(changes.values()))
    middle = float(medians(values))
    needed = max(np.log2(limits.OUTSTANDING), limits.OUTSTANDING_SIGMAS * float(mad(values)))
    return {node: (change - middle) / needed for node, change in changes.items() if change - middle > needed}


def _rise(values: np.ndarray, onset: int, phases: np.ndarray | int, floor: float) -> float:
    """Return by how much the median of all rose, 0 where that may be chance: in each phase, as far as one lasts."""
    middles, phases = medians(values), np.broadcast_to(phases, values.shape[1:])
    sides = [
        [middles[:onset][phases[:onset] == one], middles[onset:][phases[onset:] == one]] for one in {*phases.tolist()}
    ]
    sides = [[one[~np.isnan(one)] for one in side] for side in sides]
    sides = [side for side in sides if min(map(len, side))] or [[middles[:onset], middles[onset:]]]
    weights = np.array([1 / sum(1 / len(one) for one in side) for side in sides])
    rises = np.array([float(medians(after) - medians(before)) for before, after in sides])
    rise = float((weights * rises).sum() / weights.sum())
    noise = float(scatter(np.concatenate([one - medians(one) for side in sides for one in side])))
    return rise if rise >= _RISEN * max(noise, floor) / np.sqrt(weights.sum()) else 0.0
