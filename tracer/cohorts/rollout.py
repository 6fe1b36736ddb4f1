"""Cohorts of nodes beside each other: what became slower or faster with a kernel, a driver, an image, a rack.

A node is one observation, however long it was recorded: windows of one node are no independent evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracer.cohorts.contrast import Contrast, contrast, nodes_needed
from tracer.cohorts.membership import Cohort, Key, chosen, find_key, grouped
from tracer.cohorts.quantities import Quantity, quantities
from tracer.compare import limits
from tracer.compare.alignment import Grid, align
from tracer.compare.facts import LABEL, Split, split
from tracer.compare.node import Node
from tracer.compare.selection import comparable, labels, without_copies

__all__ = ["MOST_COHORTS", "Effect", "Rollout", "compare_cohorts"]

#: Beside the largest one: more would make every interval wider, and nobody reads them.
MOST_COHORTS = 8
_DAYS, _NODES = 7, 1000


@dataclass(frozen=True)
class Effect:
    """What is different in one cohort.

    Attributes:
        cohort: its value of the key.
        quantity: what was compared, without the numbers of nodes.
        usual, value: the reference's level and this cohort's, in the quantity's unit.
        change, low, high: share by which it is more, and the interval that holds the truth.
        node_days: lost in a week of 1,000 nodes, with its interval; NaN of what is not time of a node.
        needed: nodes in each cohort that would make a change of ``limits.COHORT_SOUGHT`` sure.
        told: it differs beyond the noise, by so much that it matters.
    """

    cohort: str
    quantity: Quantity
    usual: float
    value: float
    change: float
    low: float
    high: float
    node_days: tuple[float, float, float]
    needed: int
    told: bool

    @property
    def half(self) -> float:
        """Half of the interval: what stands behind ±."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Rollout:
    """What cohorts say beside each other.

    Attributes:
        key: what they were grouped by.
        grid: the windows that were compared, and the nodes in them.
        reference: the cohort with which the ``others`` are compared; ``why`` it is, in words.
        effects: by cohort and quantity; those that are told first, what is surest first.
        small: cohorts with too few nodes, those beyond the limit included.
        unlabelled: nodes of which the key is not known.
        splits: other rows of the fingerprint that differ between the reference and a cohort as a whole.
        left_out: recordings that could not be compared, with the reason; ``remarks`` what limits others.
        twice: hosts that are in more than one cohort.
    """

    key: Key
    grid: Grid
    reference: Cohort
    why: str
    others: tuple[Cohort, ...]
    effects: tuple[Effect, ...]
    small: tuple[Cohort, ...]
    unlabelled: tuple[str, ...]
    splits: tuple[tuple[str, Split], ...]
    left_out: tuple[tuple[str, str], ...]
    remarks: tuple[tuple[str, str], ...]
    twice: tuple[str, ...]

    @property
    def told(self) -> tuple[Effect, ...]:
        """What differs beyond the noise."""
        return tuple(one for one in self.effects if one.told)


def compare_cohorts(nodes: Sequence[Node], by: str, wanted: str | None = None) -> Rollout:
    """Compare the cohorts that ``by`` makes of the nodes with the one that is ``wanted``, else with the largest.

    Raises UsageError when no recording knows that key, or none has the value that is wanted.
    """
    key = find_key(by, nodes)
    once, left_out = without_copies(nodes)
    alike, unlike = comparable(once)
    left_out += unlike
    grid, misplaced = align(alike)
    left_out += [(node.path, why) for node, why in misplaced]
    cohorts, unknown = grouped(key, grid.nodes)
    names = labels(grid.nodes)
    if wanted is not None:
        first = chosen(wanted, key, cohorts)
        cohorts = [first, *(one for one in cohorts if one is not first)]
    enough = [one for one in cohorts if len(one.units) >= limits.FEWEST_IN_COHORT]
    reference, others = Cohort("", ()), []
    if enough and enough[0] is cohorts[0]:
        reference, others = enough[0], enough[1 : 1 + MOST_COHORTS]
    compared = {place for one in (reference, *others) for unit in one.units for place in unit}
    remarks = [(names[place], remark) for place in sorted(compared) for remark in grid.nodes[place].remarks]
    return Rollout(
        key=key,
        grid=grid,
        reference=reference,
        why=_why(enough) if wanted is None else "chosen",
        others=tuple(others),
        effects=tuple(_effects(grid, reference, others)),
        small=tuple(one for one in cohorts if one is not reference and one not in others),
        unlabelled=tuple(names[place] for place in unknown),
        splits=tuple(_splits(grid, key, reference, others)),
        left_out=tuple(left_out),
        remarks=tuple(remarks),
        twice=tuple(_twice(grid, (reference, *others))),
    )


def _why(cohorts: Sequence[Cohort]) -> str:
    """Say why the first cohort is the reference."""
    alike = len(cohorts) > 1 and len(cohorts[0].units) == len(cohorts[1].units)
    return "the lowest version of the largest; --reference chooses" if alike else "the largest"


def _effects(grid: Grid, reference: Cohort, others: Sequence[Cohort]) -> list[Effect]:
    """Compare every quantity; all intervals together are wrong as rarely as ``limits.COHORT_ERROR`` says."""
    pairs = []
    for quantity in quantities(grid) if others else ():
        ours = _of(quantity.octaves, reference)
        for cohort in others:
            theirs = _of(quantity.octaves, cohort)
            if min(len(ours), len(theirs)) >= limits.FEWEST_IN_COHORT and np.ptp(np.concatenate([ours, theirs])) > 0:
                pairs.append((quantity, cohort, ours, theirs))
    error = limits.COHORT_ERROR / max(1, len(pairs))
    found = [
        _effect(quantity, reference, cohort, contrast(theirs, ours, error), error)
        for quantity, cohort, ours, theirs in pairs
    ]
    return sorted(found, key=lambda one: (not one.told, -abs(one.change) / max(one.half, 1e-9)))


def _effect(quantity: Quantity, reference: Cohort, cohort: Cohort, found: Contrast, error: float) -> Effect:
    change, low, high = (
        float(2.0**octaves - 1)
        for octaves in (found.difference, found.difference - found.half, found.difference + found.half)
    )
    usual = float(np.nanmedian(_of(quantity.levels, reference)))
    matters = abs(change) >= limits.COHORT_EFFECT - 1 and abs(change) * usual * quantity.weight >= 1
    days = tuple(one * usual * _DAYS * _NODES if quantity.is_node_time else float("nan") for one in (change, low, high))
    sought = float(np.log2(limits.COHORT_SOUGHT))
    return Effect(
        cohort=cohort.value,
        quantity=quantity,
        usual=usual,
        value=usual * (1 + change),
        change=change,
        low=low,
        high=high,
        node_days=(days[0], days[1], days[2]),
        needed=nodes_needed(found.variances, sought, error, limits.COHORT_POWER),
        told=matters and (low > 0 or high < 0) and quantity.judges,
    )


def _of(values: np.ndarray, cohort: Cohort) -> np.ndarray:
    """Return one value per node of a cohort: the mean of its recordings'. What is not known is left out."""
    found = [values[list(unit)] for unit in cohort.units]
    means = [float(one[~np.isnan(one)].mean()) for one in found if not np.isnan(one).all()]
    return np.array(means)


def _splits(grid: Grid, key: Key, reference: Cohort, others: Sequence[Cohort]) -> list[tuple[str, Split]]:
    """Return what else differs, as (cohort, row): any of it may be why."""
    usual = [grid.nodes[place].facts for unit in reference.units for place in unit]
    found = []
    for cohort in others:
        theirs = [grid.nodes[place].facts for unit in cohort.units for place in unit]
        found += [(cohort.value, one) for one in split(theirs, usual) if one.name not in key.rows]
    return sorted(found, key=lambda one: (not one[1].name.startswith(f"{LABEL} "), one[1].name))


def _twice(grid: Grid, cohorts: Sequence[Cohort]) -> list[str]:
    hosts = [{grid.nodes[unit[0]].source.host for unit in one.units} - {""} for one in cohorts]
    return sorted({host for place, one in enumerate(hosts) for other in hosts[place + 1 :] for host in one & other})
