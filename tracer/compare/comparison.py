"""The whole comparison: which recordings count, what deviates in them, and whose fault it may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tracer.compare import limits
from tracer.compare.alignment import Grid, align
from tracer.compare.cause import besides_idling, cost, is_unfelt, is_victim
from tracer.compare.deviation import Findings
from tracer.compare.facts import Difference, Split, differences, split
from tracer.compare.metrics import METRICS, Series
from tracer.compare.node import Node
from tracer.compare.quality import Reservation, reservations
from tracer.compare.ranks import Apart, apart
from tracer.compare.selection import comparable, labels, of_one_cpu, partly, without_copies
from tracer.compare.series import judge
from tracer.compare.shared import of_its_own, together
from tracer.compare.suspect import Suspect, suspect
from tracer.compare.telling import Told

__all__ = ["Common", "Comparison", "compare"]

# Every recording with ranks and a ledger has it.
_ACCOUNT = Series("ranks.waiting")


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
        findings, told = judge(grid, series)
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
        if len(grid.nodes) < limits.FEW_NODES:
            own = besides_idling(own)
        if own:
            felt = not accounted or any(METRICS[one.series.metric].of_ranks for one in every)
            kind = victims if is_victim(own) else suspects if felt or not is_unfelt(own) else unfelt
            kind.append(suspect(grid, names[place], place, own))
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
