"""What limits a difference: how the sides were recorded, what they lack, what other times may do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from tracer.analysis.names import quoted
from tracer.compare.metrics import METRICS
from tracer.difference import limits
from tracer.difference.changes import Changes
from tracer.difference.grounds import shared_ns, times_of
from tracer.difference.side import Side
from tracer.difference.stretch import Stretch
from tracer.units import duration, many

__all__ = ["remarks"]

_NAMED = 4


def remarks(
    befores: Sequence[Side], after: Side, changes: Changes, stretches: Sequence[Stretch], *, twice: bool = False
) -> Iterator[str]:
    """Yield what limits the answer, in sentences that may hold unescaped names; ``twice``: a side was left out."""
    before = befores[-1]
    yield from dict.fromkeys(said for one in befores for said in _together(one, after))
    surely, perhaps = ({one.measure.series for one in changes.told("slower", 1, surely=sure)} for sure in (True, False))
    if perhaps - surely:
        more = "three or more" if len({*times_of(befores)}) == 1 else f"of {duration(limits.LONG_ENOUGH * 1e9)} or more"
        yield f"another time of the same may be as far off: more recordings of before tell, {more}"
    if twice:
        yield "a recording of before is named twice: it counts once"
    if len({*times_of(befores)}) < len(befores):
        yield "recordings of before that follow each other count as one time: leave as long between them as they last"
    ours, theirs = before.node.source, after.node.source
    others = [one for one in dict.fromkeys(side.node.source.host for side in befores) if one and one != theirs.host]
    if others and theirs.host:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        named = ", ".join(map(quoted, others[:_NAMED])) + more
        yield f"before is of {named}, after of {quoted(theirs.host)}: what differs may be the nodes' own"
    if ours.cpus != theirs.cpus and ours.cpus and theirs.cpus:
        yield f"{many(ours.cpus, 'CPU')} before, {theirs.cpus} after: rates and times are of all CPUs together"
    if ours.interval_ns != theirs.interval_ns:
        yield f"intervals of {duration(ours.interval_ns)} before, {duration(theirs.interval_ns)} after"
    lengths = {"before": fmean(one.seconds for one in befores), "after": after.seconds}
    which = min(lengths, key=lambda side: lengths[side])
    if lengths[which] < limits.MOMENT * max(lengths.values()):
        yield f"{which} is {duration(lengths[which] * 1e9)} only: it is held against the noise of such moments"
    if changes.memory >= limits.LONG_MEMORY:
        yield "the noise lasts about as long as the recordings: what comes and goes slowly looks like a change"
    if stretches:
        yield "after is not one thing: --range compares a part of it alone, or the rest"
    if any(one.parties is None for one in stretches):
        yield "who had the time is of all of after"
    if changes.partly:
        titles = dict.fromkeys(METRICS[series.metric].title for series in changes.partly)
        yield f"recorded on one side only: {', '.join(titles)}"
    if changes.rare:
        titles = dict.fromkeys(series.title for series in changes.rare)
        rest = f" and {len(titles) - _NAMED} more" if len(titles) > _NAMED else ""
        yield f"too few values to tell: {', '.join([*titles][:_NAMED])}{rest}"
    for which, side in (*(("before", one) for one in befores), ("after", after)):
        if which == "before" and len(befores) > 1:
            which = f"before ({quoted(side.name)})"
        yield from (f"{which}: {remark.removesuffix('.')}" for remark in side.node.remarks)


def _together(before: Side, after: Side) -> Iterator[str]:
    """Yield what is said of two sides of the same node and boot: their order, and what they share."""
    ours, theirs = before.node.source, after.node.source
    if ours.host != theirs.host or ours.boot_id != theirs.boot_id:
        if before.node.clocked and after.node.clocked and before.node.start_ns > after.node.end_ns:
            yield "what is called after was recorded before the other: name the older one first"
        return
    shared = shared_ns(before, after)
    if shared > 0 and (before.start_ns, before.end_ns) == (after.start_ns, after.end_ns):
        yield "both sides are the same intervals"
    elif shared > before.summary.intervals.typical_ns / 2:  # tables of one interval are read one after the other
        yield f"the sides have {duration(shared)} in common, which hides what changed"
    elif after.start_ns < before.start_ns:
        yield "what is called after was recorded before the other: name the older one first"
