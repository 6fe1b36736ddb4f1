"""What nodes do together, and what of a node's deviations is its own beside that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.compare import limits
from tracer.compare.cause import ordered
from tracer.compare.deviation import Findings
from tracer.compare.metrics import METRICS, Series
from tracer.compare.telling import Told

__all__ = ["of_its_own", "together"]


def together(changed: Mapping[Series, Findings], found: Mapping[int, Sequence[Told]]) -> dict[Series, Findings]:
    """Return those of the series in which many changed at once that are no side effect of as many different faults.

    Whoever deviates most in what only few do has another fault than the others: it is not counted among them.
    ``found`` are all deviations, by node.
    """
    metrics = {series.metric for series in changed}
    apart = {place for place, every in found.items() if ordered(every)[0].series.metric not in metrics}
    return {
        series: one
        for series, one in changed.items()
        if len(one.common.keys() - apart) > limits.COMMON_SHARE * one.nodes
    }


def of_its_own(place: int, every: Sequence[Told], changed: Mapping[Series, Findings]) -> list[Told]:
    """Return which of a node's deviations do not follow from what nodes do together, as ``together`` returns it."""
    shared = {series.metric for series in changed}
    beyond = {series for series, one in changed.items() if place in {alone.node for alone in one.deviations}}
    # Where too many ranks lost time, what else shows that on their node is no other fault.
    lost = {series.cause for series, one in changed.items() if METRICS[series.metric].of_ranks and place in one.common}
    return [
        one for one in every if one.series in beyond or one.series.metric not in shared and one.series.cause not in lost
    ]
