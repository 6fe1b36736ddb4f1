"""The whole difference: what changed, who did it, in which settings the sides differ, and what limits the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, log2

import numpy as np

from tracer.compare.facts import Difference as Setting
from tracer.compare.facts import differences
from tracer.compare.limits import EFFECT
from tracer.compare.metrics import METRICS, Series
from tracer.difference import limits
from tracer.difference.changes import Change, Changes, changes_of
from tracer.difference.grounds import distinct, lacking, times_of
from tracer.difference.remarks import remarks
from tracer.difference.side import Side, Span
from tracer.difference.stretch import Stretch, slower_stretches
from tracer.difference.whose import Party, parties
from tracer.errors import RecordingError
from tracer.units import many

__all__ = ["Difference", "difference"]

#: Reads parts of AFTER again as one, each from ns to ns of its clock; None where that can't be.
Reading = Callable[[Side, Sequence[Span]], Side | None]
# Of so many stretches who had the time is read again.
_READ = 3


@dataclass(frozen=True)
class Difference:
    """What two sides say beside each other.

    Attributes:
        befores, after: the sides, the first of one recording or more.
        changes: everything that was compared.
        slower, faster, load: the most telling change of each series that is beyond the noise and great enough.
        stretches: what is slower for a part of ``after`` only, where nothing is in the whole of it, where the whole
            does not reach ``limit`` and the part does, or where that explains the whole; the clearest first.
        limit: the factor that must not be reached; None without one. ``failing`` are those that do, in a stretch if
            there are any; ``doubtful`` those that do, or it was another time. ``lacking`` says for want of what it
            can't be told that nothing does, in sentences' parts that may hold unescaped names.
        open: changes that reach ``limit`` within their interval: that they do is not ruled out.
        parties: who had more or less time.
        settings: rows of the fingerprint that differ.
        remarks: what limits the answer, in sentences that may hold unescaped names.
    """

    befores: tuple[Side, ...]
    after: Side
    changes: Changes
    slower: tuple[Change, ...]
    faster: tuple[Change, ...]
    load: tuple[Change, ...]
    stretches: tuple[Stretch, ...]
    limit: float | None
    failing: tuple[Change, ...]
    doubtful: tuple[Change, ...]
    lacking: tuple[str, ...]
    open: tuple[Change, ...]
    parties: tuple[Party, ...]
    settings: tuple[Setting, ...]
    remarks: tuple[str, ...]

    @property
    def before(self) -> Side:
        """The latest of the sides before."""
        return self.befores[-1]

    @property
    def sensitivity(self) -> float:
        """The change, as a factor, that half of the series would have shown; NaN of none."""
        least: dict[str, float] = {}
        for one in self.changes.every:
            if one.kind != "load":
                name = one.measure.series.title
                least[name] = min(one.half, least.get(name, one.half))
        return float(2 ** np.median([*least.values()])) if least else float("nan")


def difference(
    befores: Sequence[Side],
    after: Side,
    limit: float | None = None,
    reading: Reading = lambda side, spans: None,
) -> Difference:
    """Compare a side with one recording or more of before.

    ``limit`` is the factor of slowness that must not be reached; ``reading`` is asked for stretches that are slower.
    Raises RecordingError where they can't be compared.
    """
    named, befores = befores, distinct(befores)
    for side in (*befores, after):
        _check_length(side)
    for before in befores:
        _check_filters(before, after)
    nodes, times = [before.node for before in befores], times_of(befores)
    changes = changes_of(nodes, after.node, times)
    if not changes.every:
        raise RecordingError(
            "there is too little data to tell: no series has enough values on both sides.",
            hint="record both with the same probes, for longer, while the node works",
        )
    effect = min(EFFECT, limit or EFFECT)
    slower = tuple(changes.told("slower", effect))
    failing, reaching = (tuple(changes.told("slower", limit, surely=one)) if limit else () for one in (True, False))
    # What is slower throughout is so in every stretch; but the rest of it must not hide one that reaches the limit, and
    # where several recordings say what the noise is, a stretch is seen in the whole, too.
    hidden = limit and not reaching
    stretches = slower_stretches(nodes, after.node, times) if not slower or hidden or max(times) else ()
    beyond = tuple(one for one in stretches if hidden and one.slower_by(limit or 1))
    if slower:
        stretches = tuple(one for one in stretches if one in beyond or _rises(one, slower))
    stretches = tuple(
        _with_parties(befores, after, one, reading) if place < _READ else one for place, one in enumerate(stretches)
    )
    partly, perhaps = (
        tuple(change for one in beyond for change in one.slower_by(limit or 1, surely=surely))
        for surely in (True, False)
    )
    failing = failing or partly
    return Difference(
        befores=tuple(befores),
        after=after,
        changes=changes,
        slower=slower,
        faster=tuple(changes.told("faster", effect)),
        load=tuple(changes.told("load", effect)),
        stretches=stretches,
        limit=limit,
        failing=failing,
        doubtful=() if failing else reaching or perhaps,
        lacking=tuple(dict.fromkeys(lacking(befores, after))) if limit else (),
        open=tuple(_open(changes, limit)) if limit else (),
        parties=parties(befores, after, changes),
        settings=tuple(differences([after.node.facts], [befores[-1].node.facts])),
        remarks=tuple(remarks(befores, after, changes, stretches, twice=len(befores) < len(named))),
    )


def _with_parties(befores: Sequence[Side], after: Side, stretch: Stretch, reading: Reading) -> Stretch:
    part = reading(after, [*map(after.clock_ns, stretch.spans)])
    return replace(stretch, parties=parties(befores, part, stretch.changes)) if part else stretch


def _rises(stretch: Stretch, slower: Sequence[Change]) -> bool:
    """Return whether something that is slower is clearly more so in a stretch."""
    whole = {one.measure: one.ratio for one in slower}
    return any(one.ratio >= limits.STRETCH_EFFECT * whole.get(one.measure, inf) for one in stretch.slower)


def _check_length(side: Side) -> None:
    windows = int(np.count_nonzero(side.node.seen_ns))
    if windows < limits.LEAST_BLOCKS:
        raise RecordingError(
            f"there is too little data to tell: {many(windows, 'window')} of {side.name}, it takes "
            f"{limits.LEAST_BLOCKS} on each side.",
            hint="record longer, choose a longer --range, or record with a shorter --interval",
        )


def _check_filters(before: Side, after: Side) -> None:
    ours, theirs = (", ".join(one.node.source.asked) for one in (before, after))
    if ours != theirs:
        raise RecordingError(
            f"the recordings are of different parts of a node: {ours or 'all'} before, {theirs or 'all'} after.",
            hint="record both with the same --pid, --cgroup and --cpus",
        )


def _open(changes: Changes, limit: float) -> list[Change]:
    """Return, of each series, the change that could reach the limit and does not do so for sure; the greatest first."""
    failing = {one.measure.series for one in changes.told("slower", limit)}
    found: dict[Series, Change] = {}
    for one in sorted(changes.every, key=lambda one: -one.step):
        series = one.measure.series
        if one.kind == "load" or METRICS[series.metric].kind != "histogram" or series in failing:
            continue
        if one.step + one.half >= log2(limit):
            found.setdefault(series, one)
    return [*found.values()]
