"""The whole difference: what changed, who did it, in which settings the sides differ, and what limits the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

import numpy as np

from tracer.compare.facts import Difference as Setting
from tracer.compare.facts import differences
from tracer.compare.limits import EFFECT
from tracer.compare.metrics import METRICS, Series
from tracer.difference import limits
from tracer.difference.changes import Change, Changes, changes_of
from tracer.difference.late import Late, late
from tracer.difference.side import Side
from tracer.difference.whose import Party, parties
from tracer.errors import RecordingError
from tracer.units import duration, many

__all__ = ["Difference", "difference"]

_NAMED = 4


@dataclass(frozen=True)
class Difference:
    """What two sides say beside each other.

    Attributes:
        before, after: the sides.
        changes: everything that was compared.
        slower, faster, load: the most telling change of each series that is beyond the noise and great enough.
        late: what is slower at the end of ``after`` only, where nothing is in the whole of it.
        limit: the factor that must not be reached; None without one. ``failing`` are those that do.
        open: changes that reach ``limit`` within their interval: that they do is not ruled out.
        parties: who had more or less time.
        settings: rows of the fingerprint that differ.
        remarks: what limits the answer, in sentences that may hold unescaped names.
    """

    before: Side
    after: Side
    changes: Changes
    slower: tuple[Change, ...]
    faster: tuple[Change, ...]
    load: tuple[Change, ...]
    late: Late | None
    limit: float | None
    failing: tuple[Change, ...]
    open: tuple[Change, ...]
    parties: tuple[Party, ...]
    settings: tuple[Setting, ...]
    remarks: tuple[str, ...]

    @property
    def sensitivity(self) -> float:
        """The change, as a factor, that half of the series would have shown; NaN of none."""
        least: dict[str, float] = {}
        for one in self.changes.every:
            if one.kind != "load":
                name = one.measure.series.title
                least[name] = min(one.half, least.get(name, one.half))
        return float(2 ** np.median([*least.values()])) if least else float("nan")


def difference(before: Side, after: Side, limit: float | None = None) -> Difference:
    """Compare two sides; ``limit`` is the factor of slowness that must not be reached.

    Raises RecordingError where they can't be compared.
    """
    for side in (before, after):
        _check_length(side)
    _check_filters(before, after)
    changes = changes_of(before.node, after.node)
    if not changes.every:
        raise RecordingError(
            "there is too little data to tell: no series has enough values on both sides.",
            hint="record both with the same probes, for longer, while the node works",
        )
    effect = min(EFFECT, limit or EFFECT)
    slower = tuple(changes.told("slower", effect))
    failing = tuple(changes.told("slower", limit)) if limit else ()
    end = None if slower else late(before.node, after.node, limit or EFFECT)
    return Difference(
        before=before,
        after=after,
        changes=changes,
        slower=slower,
        faster=tuple(changes.told("faster", effect)),
        load=tuple(changes.told("load", effect)),
        late=end,
        limit=limit,
        failing=failing or (end.slower if limit and end else ()),
        open=tuple(_open(changes, limit)) if limit else (),
        parties=parties(before, after, changes),
        settings=tuple(differences([after.node.facts], [before.node.facts])),
        remarks=tuple(_remarks(before, after, changes, end)),
    )


def _check_length(side: Side) -> None:
    windows = int(np.count_nonzero(side.node.seen_ns))
    if windows < limits.LEAST_BLOCKS:
        raise RecordingError(
            f"there is too little data to tell: {many(windows, 'window')} of {side.name}, it takes "
            f"{limits.LEAST_BLOCKS} on each side.",
            hint="record longer, choose a longer --range, or record with a shorter --interval",
        )


def _check_filters(before: Side, after: Side) -> None:
    ours, theirs = (", ".join(f"{name} {value}" for name, value in one.node.source.filters) for one in (before, after))
    if ours != theirs:
        raise RecordingError(
            f"the recordings are of different parts of a node: {ours or 'all'} before, {theirs or 'all'} after.",
            hint="record both with the same --pid, --cgroup and --cpus",
        )


def _open(changes: Changes, limit: float) -> Iterator[Change]:
    """Yield, of each series, the change that could reach the limit and does not do so for sure."""
    failing = {one.measure.series for one in changes.told("slower", limit)}
    seen: set[Series] = set()
    for one in changes.every:
        series = one.measure.series
        if one.kind == "load" or METRICS[series.metric].kind != "histogram" or series in failing | seen:
            continue
        if one.step + one.half >= log2(limit):
            seen.add(series)
            yield one


def _remarks(before: Side, after: Side, changes: Changes, end: Late | None) -> Iterator[str]:
    yield from _together(before, after)
    ours, theirs = before.node.source, after.node.source
    if ours.cpus != theirs.cpus and ours.cpus and theirs.cpus:
        yield f"{many(ours.cpus, 'CPU')} before, {theirs.cpus} after: rates and times are of all CPUs together"
    if ours.interval_ns != theirs.interval_ns:
        yield f"intervals of {duration(ours.interval_ns)} before, {duration(theirs.interval_ns)} after"
    short, long = sorted((before, after), key=lambda side: side.seconds)
    if short.seconds < limits.MOMENT * long.seconds:
        which = "before" if short is before else "after"
        yield f"{which} is {duration(short.seconds * 1e9)} only: it is held against the noise of such moments"
    if changes.memory >= limits.LONG_MEMORY:
        yield "the noise lasts about as long as the recordings: what comes and goes slowly looks like a change"
    if end:
        yield "after is not one thing: compare its start and its end with --range"
    if changes.partly:
        titles = dict.fromkeys(METRICS[series.metric].title for series in changes.partly)
        yield f"recorded on one side only: {', '.join(titles)}"
    if changes.rare:
        titles = dict.fromkeys(series.title for series in changes.rare)
        rest = f" and {len(titles) - _NAMED} more" if len(titles) > _NAMED else ""
        yield f"too few values to tell: {', '.join([*titles][:_NAMED])}{rest}"
    for which, side in (("before", before), ("after", after)):
        yield from (f"{which}: {remark}" for remark in side.node.remarks)


def _together(before: Side, after: Side) -> Iterator[str]:
    """Yield what is said of two sides of the same node and boot: their order, and what they share."""
    ours, theirs = before.node.source, after.node.source
    if ours.host != theirs.host or ours.boot_id != theirs.boot_id:
        if before.node.clocked and after.node.clocked and before.node.start_ns > after.node.end_ns:
            yield "what is called after was recorded before the other: name the older one first"
        return
    shared = min(before.end_ns, after.end_ns) - max(before.start_ns, after.start_ns)
    if (before.start_ns, before.end_ns) == (after.start_ns, after.end_ns):
        yield "both sides are the same intervals"
    elif shared > before.summary.intervals.typical_ns / 2:  # tables of one interval are read one after the other
        yield f"the sides have {duration(shared)} in common, which hides what changed"
    elif after.end_ns <= before.start_ns:
        yield "what is called after was recorded before the other: name the older one first"
