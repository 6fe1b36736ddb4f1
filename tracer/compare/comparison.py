"""The whole comparison: which recordings count, what deviates in them, and whose fault it may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracer.compare import limits
from tracer.compare.alignment import Grid, align
from tracer.compare.cause import cost, is_unfelt, is_victim, likely_cause, ordered
from tracer.compare.deviation import Deviation, Findings, of_histograms, of_numbers
from tracer.compare.facts import Difference, Split, differences, split
from tracer.compare.kinds import with_kinds
from tracer.compare.metrics import METRICS, Cause, Series
from tracer.compare.node import Node
from tracer.compare.quality import Reservation, reservations
from tracer.compare.ranks import Apart, apart
from tracer.compare.selection import comparable, labels, of_one_cpu, partly, without_copies
from tracer.compare.shared import of_its_own, together
from tracer.compare.telling import Told, Unit, Values, told_histogram, told_number

__all__ = ["Common", "Comparison", "Confidence", "Detail", "Suspect", "compare", "confidence"]

Confidence = Literal["high", "medium", "low"]
_SURE, _UNSURE = 1.5, 1.15  # times the score that is needed
_SURE_WINDOWS = 5
_SURE_NS = 60e9
_LOSSY = 0.01
_NS = 1e9
# Every recording with ranks and a ledger has it.
_ACCOUNT = Series("ranks.waiting")


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


@dataclass(frozen=True)
class Common:
    """A series in which so many of the nodes changed together that none is to blame.

    Attributes:
        changed: what they are called, each with its ratio, the greatest first.
        nodes: how many were measured.
        splits: rows of the fingerprint in which they agree and all the others agree on another value.
        lasting: they did not change, but are slower than the others from the start on.
        since_ns: UTC; NaN where it is not known.
    """

    series: Series
    changed: tuple[tuple[str, float], ...]
    nodes: int
    splits: tuple[Split, ...]
    lasting: bool = False
    since_ns: float = float("nan")


@dataclass(frozen=True)
class Comparison:
    """What many recordings say beside each other.

    Attributes:
        grid: the windows that were compared, and the nodes in them.
        labels: what the nodes are called, as in ``grid``.
        suspects: nodes that deviate by themselves, the one that loses most time first.
        victims: nodes that only wait more than the others.
        unfelt: nodes that deviate in what their ranks, by their own accounts, lose nothing to.
        common: what too many nodes do.
        differences: rows of the fingerprint in which suspects differ from the nodes that don't deviate.
        left_out: recordings that were readable and can't be compared, each with the reason.
        remarks: what limits single recordings: (label, sentence).
        partly: (series' title, how many nodes have it) of what not all nodes measured.
        judged: how many series were compared.
        ranks: ranks that do otherwise than the others of their job.
        reservations: where much of what was to be compared is missing.
    """

    grid: Grid
    labels: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    victims: tuple[Suspect, ...]
    unfelt: tuple[Suspect, ...]
    common: tuple[Common, ...]
    differences: tuple[Difference, ...]
    left_out: tuple[tuple[str, str], ...]
    remarks: tuple[tuple[str, str], ...]
    partly: tuple[tuple[str, int], ...]
    judged: int
    reservations: tuple[Reservation, ...] = ()
    ranks: tuple[Apart, ...] = ()

    @property
    def few(self) -> bool:
        """Whether there are too few nodes for their scatter to be known."""
        return len(self.labels) < limits.FEW_NODES

    @property
    def deviates(self) -> bool:
        """Whether anything does: a node by itself, many together, or a rank."""
        return bool(self.suspects or self.together or self.ranks)

    @property
    def together(self) -> tuple[Common, ...]:
        """What too many nodes do at once; of recordings of different times nobody can say since when they do."""
        return tuple(one for one in self.common if one.lasting or not self.grid.by_start)


def compare(nodes: Sequence[Node], unread: Sequence[str] = ()) -> Comparison:
    """Compare nodes; those that can't be compared with most of the others are left out with the reason.

    ``unread`` are recordings that could not be read: of those nodes nobody knows anything.
    """
    once, copies = without_copies(nodes)
    alike, unlike = comparable(once)
    alike, others = of_one_cpu(alike)
    grid, misplaced = align(alike)
    unlike += others
    unlike += [(node.path, why) for node, why in misplaced]
    names = labels(grid.nodes)
    found: dict[int, list[Told]] = {}
    changed: dict[Series, Findings] = {}
    measured = Counter(series for node in grid.nodes for series in node.series)
    judged = [series for series, number in sorted(measured.items()) if number >= 2]
    for series in judged:
        findings, told = _judge(grid, series)
        if findings.common:
            changed[series] = findings
        for one in told:
            found.setdefault(one.deviation.node, []).append(one)
    changed = together(changed, found)
    suspects: list[Suspect] = []
    victims: list[Suspect] = []
    unfelt: list[Suspect] = []
    accounted = measured[_ACCOUNT] > len(grid.nodes) / 2
    for place, every in found.items():
        own = of_its_own(place, every, changed)
        if own:
            felt = not accounted or any(METRICS[one.series.metric].of_ranks for one in every)
            kind = victims if is_victim(own) else suspects if felt or not is_unfelt(own) else unfelt
            kind.append(_suspect(grid, names[place], place, own))
    suspects.sort(key=lambda one: (-cost(one.deviations), -max(told.deviation.score for told in one.deviations)))
    accused = {one.label for one in (*suspects, *victims, *unfelt)}
    twins = [node.facts for node, label in zip(grid.nodes, names, strict=True) if label not in accused]
    return Comparison(
        grid=grid,
        labels=names,
        suspects=tuple(suspects),
        victims=tuple(victims),
        unfelt=tuple(unfelt),
        common=tuple(
            sorted((_common(grid, names, *one) for one in changed.items()), key=lambda one: -len(one.changed))
        ),
        differences=tuple(differences([one.node.facts for one in suspects], twins)),
        left_out=(*copies, *unlike),
        remarks=tuple(
            (label, remark) for node, label in zip(grid.nodes, names, strict=True) for remark in node.remarks
        ),
        partly=partly(grid.nodes),
        judged=len(judged),
        reservations=reservations(grid, names, [*unread, *(path for path, _ in unlike)]),
        ranks=apart(grid, names),
    )


def _common(grid: Grid, names: Sequence[str], series: Series, findings: Findings) -> Common:
    ranked = sorted(findings.common.items(), key=lambda one: -one[1])
    ours = [grid.nodes[place].facts for place in findings.common]
    theirs = [node.facts for place, node in enumerate(grid.nodes) if place not in findings.common]
    told = tuple((names[place], ratio) for place, ratio in ranked)
    since_ns = float("nan") if findings.lasting else grid.unix_ns(findings.onset)
    return Common(series, told, findings.nodes, tuple(split(ours, theirs)), findings.lasting, since_ns)


def _judge(grid: Grid, series: Series) -> tuple[Findings, list[Told]]:
    metric = METRICS[series.metric]
    if metric.kind == "histogram":
        first, slots = grid.histograms(series)
        length_ns = grid.length_ns / max(node.every for node in grid.nodes)
        findings = with_kinds(of_histograms(slots, length_ns, first), slots, first, length_ns)
        values = Values(slots, first)
        told = [told_histogram(series, one, values) for one in (*findings.deviations, *findings.each)]
        return findings, [one for one in told if one.value > one.median]
    pairs = grid.numbers(series)
    if metric.kind == "rate":
        pairs[..., 1] /= _NS
    findings = of_numbers(pairs, metric.least)
    unit: Unit = "share" if metric.kind == "share" else "per second"
    told = [told_number(series, one, pairs, unit) for one in (*findings.deviations, *findings.each)]
    # Added up over all its windows it must still show.
    return findings, [one for one in told if one.value + metric.least >= limits.EFFECT * (one.median + metric.least)]


def _suspect(grid: Grid, label: str, place: int, deviations: list[Told]) -> Suspect:
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
