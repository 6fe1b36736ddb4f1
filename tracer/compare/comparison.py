"""The whole comparison: which recordings count, what deviates in them, and whose fault it may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tracer.compare import limits
from tracer.compare.alignment import Grid, align
from tracer.compare.cause import is_victim, likely_cause, ordered
from tracer.compare.deviation import Findings, of_histograms, of_numbers
from tracer.compare.facts import Difference, Split, differences, split
from tracer.compare.metrics import METRICS, Cause, Series
from tracer.compare.node import Node
from tracer.compare.selection import comparable, labels, partly
from tracer.compare.telling import Told, Unit, told_histogram, told_number

__all__ = ["Common", "Comparison", "Confidence", "Detail", "Suspect", "compare"]

Confidence = Literal["high", "medium", "low"]
_SURE, _UNSURE = 1.5, 1.15  # times the score that is needed
_SURE_WINDOWS = 5
_LOSSY = 0.01
_NS = 1e9


@dataclass(frozen=True)
class Detail:
    """Where and who, as far as seen: ``cpus`` as in ``CPU 3``; ``who`` in sentences with unescaped names.

    ``holder`` and ``pid`` are the task that had the CPU, if it is one; ``usual``: its peers have such a one, for about
    as long. ``throttled``: tasks waited for CPUs that were idle, as a CPU quota makes them. ``rank`` is the one that
    waited most, as in ``rank 37 of job 48213``; ``jobs`` what ran there.
    """

    cpus: str = ""
    who: str = ""
    holder: str = ""
    pid: int = 0
    usual: bool = False
    throttled: bool = False
    rank: str = ""
    jobs: str = ""


@dataclass(frozen=True)
class Suspect:
    """A node that deviates. ``deviations`` are ordered, what tells most of the cause first.

    ``since_ns`` is UTC; NaN when it is not known. ``lasting``: from the start of the recordings on.
    """

    label: str
    node: Node
    deviations: tuple[Told, ...]
    cause: Cause
    confidence: Confidence
    since_ns: float
    lasting: bool


@dataclass(frozen=True)
class Common:
    """A series in which so many of the nodes changed together that none is to blame.

    Attributes:
        changed: what they are called, each with its ratio, the greatest first.
        nodes: how many were measured.
        splits: rows of the fingerprint in which they agree and all the others agree on another value.
    """

    series: Series
    changed: tuple[tuple[str, float], ...]
    nodes: int
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class Comparison:
    """What many recordings say beside each other.

    Attributes:
        grid: the windows that were compared, and the nodes in them.
        labels: what the nodes are called, as in ``grid``.
        suspects: nodes that deviate by themselves, the one that loses most time first.
        victims: nodes that only wait more than the others.
        common: what too many nodes do together.
        differences: rows of the fingerprint in which suspects differ from the nodes that don't deviate.
        left_out: recordings that were readable and can't be compared, each with the reason.
        remarks: what limits single recordings: (label, sentence).
        partly: (series' title, how many nodes have it) of what not all nodes measured.
        judged: how many series were compared.
    """

    grid: Grid
    labels: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    victims: tuple[Suspect, ...]
    common: tuple[Common, ...]
    differences: tuple[Difference, ...]
    left_out: tuple[tuple[str, str], ...]
    remarks: tuple[tuple[str, str], ...]
    partly: tuple[tuple[str, int], ...]
    judged: int

    @property
    def few(self) -> bool:
        """Whether there are too few nodes for their scatter to be known."""
        return len(self.labels) < limits.FEW_NODES


def compare(nodes: Sequence[Node]) -> Comparison:
    """Compare nodes; those that can't be compared with most of the others are left out with the reason."""
    alike, left_out = comparable(nodes)
    grid, misplaced = align(alike)
    left_out += [(node.path, why) for node, why in misplaced]
    names = labels(grid.nodes)
    found: dict[int, list[Told]] = {}
    common: list[Common] = []
    measured = Counter(series for node in grid.nodes for series in node.series)
    judged = [series for series, number in sorted(measured.items()) if number >= 2]
    for series in judged:
        findings, told = _judge(grid, series)
        changed = findings.common or {one.node: one.ratio for one in findings.deviations}
        if findings.nodes >= limits.FEW_NODES and len(changed) > limits.COMMON_SHARE * findings.nodes:
            common.append(_common(grid, names, series, changed, findings.nodes))
            continue
        for one in told:
            found.setdefault(one.deviation.node, []).append(one)
    shared = {one.series.metric for one in common}
    suspects: list[Suspect] = []
    victims: list[Suspect] = []
    for place, every in found.items():
        # What follows from what all have is no single node's.
        own = [one for one in every if one.series.metric not in shared]
        if own:
            (victims if is_victim(own) else suspects).append(_suspect(grid, names[place], place, own))
    suspects.sort(key=lambda one: -max(told.deviation.score for told in one.deviations))
    accused = {one.label for one in (*suspects, *victims)}
    twins = [node.facts for node, label in zip(grid.nodes, names, strict=True) if label not in accused]
    return Comparison(
        grid=grid,
        labels=names,
        suspects=tuple(suspects),
        victims=tuple(victims),
        common=tuple(sorted(common, key=lambda one: -len(one.changed))),
        differences=tuple(differences([one.node.facts for one in suspects], twins)),
        left_out=tuple(left_out),
        remarks=tuple(
            (label, remark) for node, label in zip(grid.nodes, names, strict=True) for remark in node.remarks
        ),
        partly=partly(grid.nodes),
        judged=len(judged),
    )


def _common(grid: Grid, names: Sequence[str], series: Series, changed: Mapping[int, float], nodes: int) -> Common:
    ranked = sorted(changed.items(), key=lambda one: -one[1])
    ours = [grid.nodes[place].facts for place in changed]
    theirs = [node.facts for place, node in enumerate(grid.nodes) if place not in changed]
    return Common(series, tuple((names[place], ratio) for place, ratio in ranked), nodes, tuple(split(ours, theirs)))


def _judge(grid: Grid, series: Series) -> tuple[Findings, list[Told]]:
    metric = METRICS[series.metric]
    if metric.kind == "histogram":
        first, slots = grid.histograms(series)
        findings = of_histograms(slots, grid.length_ns / max(node.every for node in grid.nodes), first)
        told = [told_histogram(series, one, slots, first) for one in findings.deviations]
        return findings, [one for one in told if one.value > one.median]
    pairs = grid.numbers(series)
    if metric.kind == "rate":
        pairs[..., 1] /= _NS
    findings = of_numbers(pairs, metric.least)
    unit: Unit = "share" if metric.kind == "share" else "per second"
    told = [told_number(series, one, pairs, unit) for one in findings.deviations]
    # Added up over all its windows it must still show.
    return findings, [one for one in told if one.value + metric.least >= limits.EFFECT * (one.median + metric.least)]


def _suspect(grid: Grid, label: str, place: int, deviations: list[Told]) -> Suspect:
    told = ordered(deviations)
    lasting = any(one.deviation.lasting and not one.deviation.begin for one in told)
    begin = min(one.deviation.begin for one in told)
    node = grid.nodes[place]
    return Suspect(
        label=label,
        node=node,
        deviations=tuple(told),
        cause=likely_cause(told),
        confidence=_confidence(len(grid.nodes), node, told),
        since_ns=grid.unix_ns(begin),
        lasting=lasting,
    )


def _confidence(nodes: int, node: Node, told: Sequence[Told]) -> Confidence:
    best = max((one.deviation for one in told), key=lambda one: one.score)
    if nodes < limits.FEW_NODES or best.score < _UNSURE:
        return "low"
    sure = best.score >= _SURE and best.end - best.begin >= _SURE_WINDOWS and node.lost <= _LOSSY
    return "high" if sure else "medium"
