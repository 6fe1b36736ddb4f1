"""Nodes of two kinds of which only the tails differ from the start on: no middle shows it, and no node's own past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tracer.compare import limits
from tracer.compare.atonce import most_at_once
from tracer.compare.deviation import Deviation, Findings
from tracer.compare.groups import two_kinds
from tracer.compare.robust import medians
from tracer.compare.scan import baseline_of
from tracer.compare.shapes import LEAST_VALUES, beyond, blurred, means_ns

__all__ = ["tails", "with_kinds"]

#: A node is known by so many of the windows.
_KNOWN = 0.5
#: Of either kind so many have to be on its side.
_MOST = 0.9


def with_kinds(findings: Findings, slots: np.ndarray, first: int, length_ns: float) -> Findings:
    """Return ``findings``, or, where nothing is common and there are two kinds, what these are.

    ``slots`` ``(nodes, windows, n)`` are histograms whose first slot is ``first``, of ``length_ns`` in each window.
    """
    slower = {} if findings.common else tails(slots, first, length_ns)
    if not slower:
        return _of_one_kind(findings) if findings.lasting else findings
    # A kind shows otherwise in each phase of a job: that is no change of a node's, unless it goes far beyond.
    alike = [
        one
        for one in findings.deviations
        if one.node in slower
        and (one.lasting or one.form == "tail")
        and one.ratio < limits.OUTSTANDING * slower[one.node]
    ]
    return replace(_without(findings, alike), common=slower, lasting=True)


def _of_one_kind(findings: Findings) -> Findings:
    """Return ``findings`` without what nodes of the slower kind do at once: that is the kind's in that phase."""
    at_once = most_at_once({one.node: one.begin for one in findings.deviations if one.node in findings.common})
    if len(at_once) <= max(1, limits.COMMON_SHARE * len(findings.common)):
        return findings
    return _without(findings, [one for one in findings.deviations if one.node in at_once])


def _without(findings: Findings, alike: Sequence[Deviation]) -> Findings:
    own = tuple(one for one in findings.deviations if one not in alike)
    return replace(findings, deviations=own, each=(*findings.each, *alike))


def tails(slots: np.ndarray, first: int, length_ns: float) -> Mapping[int, float]:
    """Return the nodes that have more long values than the others from the start on, and the ratio of their means.

    Of every level that so many values are usually beyond it is asked whether nodes are of two kinds in how many theirs
    are; whoever has more must lose as much by it as is told at all.
    """
    if len(slots) < limits.FEW_NODES:
        return {}
    counts = slots.sum(axis=-1, dtype=np.float64)
    places = np.flatnonzero((counts >= LEAST_VALUES).mean(axis=1) >= _KNOWN)
    slots, counts = slots[places], counts[places]
    if len(places) < limits.FEW_NODES:
        return {}
    functions, windows = blurred(slots), slots.shape[1]
    merged = slots.sum(axis=1)
    means = means_ns(merged, first)
    for more, least in beyond(functions, medians(functions), counts, np.zeros(len(slots)), limits.BULK_FLOOR):
        # What counting makes of the median of the first windows.
        chance = float(np.nanmedian(least)) / np.sqrt(baseline_of(windows) or windows)
        slow = [*two_kinds(more, max(limits.TAIL_FLOOR, chance), limits.TAIL.level)]
        if not slow:
            continue
        rest = np.delete(means, slow)
        usual = float(np.median(rest))
        lost = (means[slow] - usual) * merged[slow].sum(axis=1) / (windows * length_ns)
        # So many levels are asked that chance parts the nodes at one now and then, but not their means as well.
        apart = np.quantile(means[slow], 1 - _MOST) > np.quantile(rest, _MOST)
        if apart and np.median(means[slow]) >= limits.KINDS * usual and np.median(lost) >= limits.LEAST_LOST:
            return {int(places[node]): float(means[node] / usual) for node in slow}
    return {}
