"""One series of many nodes: which of them deviate, how, how much and since which window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tracer.compare import limits
from tracer.compare.atonce import Together, most_at_once, outstanding
from tracer.compare.judged import Judged, reference
from tracer.compare.onset import UNKNOWN, Onset
from tracer.compare.patterns import Pattern, amounts
from tracer.compare.phases import phases_of
from tracer.compare.robust import medians
from tracer.compare.scan import LEAST_WINDOWS
from tracer.compare.shapes import beyond, blurred, centroids, means_ns, states

__all__ = ["Deviation", "Findings", "of_histograms", "of_numbers"]

# What is seen now and then only has no noise that could be told.
_KNOWN = 0.5
Form = Literal["bulk", "tail"]


@dataclass(frozen=True)
class Deviation:
    """What one node does in one series.

    Attributes:
        node: its place among those compared.
        form: whether all values are greater, or only the worst of them.
        score: how sure, as a multiple of what is needed.
        ratio: against what the others do meanwhile; of a histogram its mean or middle, whichever shows more.
        begin, end: windows in which it does.
        lasting: from the start of the recording on, or so early that there is no baseline without it.
        lost: seconds per second that it costs; NaN where that is no time.
        since: from when on, and how sure that is; it may be earlier than where it shows best.
    """

    node: int
    form: Form
    score: float
    ratio: float
    begin: int
    end: int
    lasting: bool
    lost: float = float("nan")
    since: Onset = UNKNOWN


@dataclass(frozen=True)
class Findings:
    """All that deviates in one series of ``nodes``.

    ``common``: so many that changed about the same time that it may be no node's own doing, each with its ratio. Then
    ``deviations`` are of those only that go far beyond that, and ``each`` is what would be said of the others, one by
    one, where that can be told. They changed with window ``onset``, or are ``lasting`` as they are.
    """

    deviations: tuple[Deviation, ...]
    common: Mapping[int, float]
    nodes: int
    each: tuple[Deviation, ...] = ()
    onset: int = 0
    lasting: bool = False


def of_histograms(slots: np.ndarray, length_ns: float, first: int = 0) -> Findings:
    """Compare histograms ``(nodes, windows, n)``, whose first slot is ``first``, of which ``length_ns`` is seen."""
    middles, errors = centroids(slots, first)
    known = _enough(middles)
    if known.sum() < 2:
        return Findings((), {}, int(known.sum()))
    slots, middles, errors = slots[known], middles[known], errors[known]
    places, nodes = np.flatnonzero(known), int(known.sum())
    needed, floor = _asked(nodes)
    few = nodes < limits.FEW_NODES
    asked = (limits.PLAIN, limits.PLAIN_TAIL) if few else (limits.BULK, limits.TAIL)
    functions, counts = blurred(slots), slots.sum(axis=-1, dtype=np.float64)
    phases = phases_of(states(medians(functions), medians(counts)))
    bulk = Judged(middles - reference(middles), asked[0], floor, errors, phases)
    patterns = [] if few else list(amounts(functions, medians(functions), counts))
    # What load hides from the middle of a distribution, all of its levels may show.
    whole = (Judged(one * by.octaves, asked[0], floor, phases=phases) for by, one in patterns if by.whole)
    every = [one.together(middles) for one in (bulk, *whole)]
    many = any(one.many for one in every)
    together = next((one for one in every if one.changes), bulk.alike())._replace(many=many)
    if together.changes and not _costs(together, slots, first, length_ns):
        together = Together(many=many)
    levels = beyond(functions, reference(functions), counts, bulk.habit, floor)
    judged = [bulk, *(Judged(more, asked[1], limits.TAIL_FLOOR, least, phases) for more, least in levels)]
    found: dict[int, Deviation] = {}
    for one in judged:
        by_steps = one.changed(by_steps=True) if together.many and one is bulk else []
        for node, score, begin, end, lasting in (*one.found(), *by_steps):
            if node in found and score <= found[node].score:
                continue
            mean, spent = _spent(slots[:, begin:end], first, node, length_ns)
            middle = 2.0 ** bulk.size(node, begin, end, lasting)
            form: Form = "bulk" if middle >= needed else "tail"
            # Of what is scattered widely the mean tells little: a few values make it.
            ratio = max(mean, middle)
            lost = (ratio - 1) * spent
            if ratio >= needed and lost >= limits.LEAST_LOST:
                since = one.onset(node, begin, end, lasting)
                found[node] = Deviation(int(places[node]), form, score, ratio, begin, end, lasting, lost, since)
    if patterns:
        for more in _patterned(patterns, slots, first, length_ns, phases):
            found.setdefault(more.node, replace(more, node=int(places[more.node])))
    for node, score in outstanding(together.changes).items():
        ratio, spent = _spent(slots[:, together.onset :], first, node, length_ns)
        beyond_them = Deviation(int(places[node]), "bulk", score, ratio, together.onset, slots.shape[1], False)
        found[node] = replace(beyond_them, lost=(ratio - 1) * spent, since=Onset(together.onset, 1.0))
    return _findings(found, together, places)


def _costs(together: Together, slots: np.ndarray, first: int, length_ns: float) -> bool:
    """Return whether anybody waits for what the nodes have together: most of them lose enough by it."""
    merged = slots[:, together.onset :].sum(axis=1)
    spent_ns = np.nan_to_num(means_ns(merged, first)) * merged.sum(axis=1)
    lost = [spent_ns[node] * (1 - 2.0**-change) for node, change in together.changes.items()]
    return bool(np.median(lost) >= limits.LEAST_LOST * (slots.shape[1] - together.onset) * length_ns)


def _patterned(
    patterns: Sequence[tuple[Pattern, np.ndarray]], slots: np.ndarray, first: int, length_ns: float, phases: np.ndarray
) -> Iterator[Deviation]:
    """Yield the nodes that began to show a known kind of slowness, which may hide in the noise of every single level.

    By how much, that kind tells better than their means, which a few values make.
    """
    for pattern, amount in patterns:
        judged = Judged(amount, limits.TAIL, pattern.floor, phases=phases)
        for node, score, begin, end, lasting in judged.changed():
            ratio = pattern.ratio(judged.size(node, begin, end, lasting))
            _, spent = _spent(slots[:, begin:end], first, node, length_ns)
            lost = (ratio - 1) * spent
            if ratio >= limits.EFFECT and lost >= limits.LEAST_LOST:
                form: Form = "bulk" if pattern.whole else "tail"
                since = judged.onset(node, begin, end, lasting)
                yield Deviation(node, form, score, ratio, begin, end, lasting, lost, since)


def of_numbers(pairs: np.ndarray, least: float) -> Findings:
    """Compare (above, below), shape ``(nodes, windows, 2)``; ``least`` of their ratio is too small to matter."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(pairs[..., 1] > 0, pairs[..., 0] / pairs[..., 1], np.nan)
    known = _enough(values)
    if known.sum() < 2:
        return Findings((), {}, int(known.sum()))
    logs = np.log2(values[known] + least)
    places, nodes = np.flatnonzero(known), int(known.sum())
    needed, floor = _asked(nodes)
    judged = Judged(logs - reference(logs), limits.PLAIN, floor)
    many = (together := judged.together(logs)).many
    together = together if together.changes else judged.alike()._replace(many=many)
    found: dict[int, Deviation] = {}
    by_steps = judged.changed(by_steps=True) if together.many else []
    for node, score, begin, end, lasting in (*judged.found(), *by_steps):
        ratio = 2.0 ** judged.size(node, begin, end, lasting)
        if ratio >= needed and (node not in found or score > found[node].score):
            since = judged.onset(node, begin, end, lasting)
            found[node] = Deviation(int(places[node]), "bulk", score, ratio, begin, end, lasting, since=since)
    for node, score in outstanding(together.changes).items():
        ratio = 2.0 ** together.changes[node]
        onset, end = together.onset, logs.shape[1]
        found[node] = Deviation(int(places[node]), "bulk", score, ratio, onset, end, False, since=Onset(onset, 1.0))
    return _findings(found, together, places)


def _findings(found: Mapping[int, Deviation], together: Together, places: np.ndarray) -> Findings:
    """Return what was found, by place among what is known; ``together`` is by place among these."""
    nodes, changes = len(places), together.changes
    if not changes and nodes >= limits.FEW_NODES:
        at_once = most_at_once({node: one.begin for node, one in found.items()})
        if len(at_once) > limits.COMMON_SHARE * nodes:
            changes = {node: float(np.log2(found[node].ratio)) for node in at_once}
            onset = int(np.median([found[node].begin for node in at_once]))
            together = Together(changes, onset, lasting=all(found[node].lasting for node in at_once))
    every = {int(places[node]): 2.0**change for node, change in changes.items()}
    # What all did took nothing from what each is held against, and what nodes are from the start on nothing from that
    # of others, nor from how they change.
    far = {*(found if len(changes) in (0, nodes) else ()), *outstanding(changes)}
    if together.lasting:
        far |= {node for node, one in found.items() if node not in changes or not one.lasting}
    # Where most changed, so did that.
    each = [one for node, one in found.items() if node not in far and len(changes) <= nodes / 2]
    deviations = tuple(one for node, one in found.items() if node in far)
    return Findings(deviations, every, nodes, tuple(each), together.onset, together.lasting)


def _asked(nodes: int) -> tuple[float, float]:
    """Return the effect that is asked for among so many nodes, and the least sigma."""
    if nodes < limits.FEW_NODES:
        return limits.EFFECT_OF_FEW, limits.BULK_FLOOR_OF_FEW
    return limits.EFFECT, limits.BULK_FLOOR


def _spent(slots: np.ndarray, first: int, node: int, length_ns: float) -> tuple[float, float]:
    """Return the ratio of a node's mean to the others' in these windows.

    And the seconds per second that it would take if its values were as long as theirs.
    """
    merged = slots.sum(axis=1)
    means = means_ns(merged, first)
    usual = float(medians(np.delete(means, node)))
    seconds = slots.shape[1] * length_ns / 1e9
    ratio = float(means[node] / usual) if usual else float("inf")
    return ratio, float(merged[node].sum()) / seconds * usual / 1e9


def _enough(values: np.ndarray) -> np.ndarray:
    """Return which nodes are known in at least four windows, and in half of those in which any is."""
    known = ~np.isnan(values)
    least = max(LEAST_WINDOWS, _KNOWN * known.any(axis=0).sum())
    found: np.ndarray = known.sum(axis=1) >= least
    return found
