"""How far a report can be trusted: what was lost, what has no name, what the file does not hold of the recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracer.analysis.finding import Normal
from tracer.analysis.losses import missed
from tracer.analysis.rules.quality import intervals, losses, own_use, unseen
from tracer.analysis.rules.stackless import stackless
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.reports.html.heat import Heat
from tracer.reports.html.lanes import Lanes
from tracer.reports.html.timeline import Timeline
from tracer.reports.text import loss_meaning
from tracer.units import count, duration, many, moment, percent

__all__ = ["dropped", "quality", "stack_quality"]

_QUALITY = (
    ("lost events", losses),
    ("context switches", unseen),
    ("intervals", intervals),
    ("own cost", own_use),
)
#: Of a flame graph's time, in functions without a name or in stacks that were not taken.
_UNNAMED = 0.1
#: A clock set by less is as good as the seconds that people read.
_CLOCK_SET_NS = 1_000_000_000
_MOST_SETS = 3
_UNNAMED_HEADS = ("in", "frames", "time, where innermost")


def quality(summary: Summary, source: Source, warning: str) -> list[dict[str, Any]]:
    """Return how far the numbers can be trusted: the summary's own rules, and what could not be traced."""
    chips = [_chip("recording", "bad", warning)] if warning else []
    for what, rule in _QUALITY:
        outcome = rule(summary)
        chips += [_chip(what, "bad", f"{one.what} {one.who}".strip()) for one in outcome.findings]
        if outcome.normal:
            chips.append(_chip(what, "good", _told(outcome.normal)))
        elif outcome.missing:
            chips.append(_chip(what, "unknown", outcome.missing))
    chips += _clock(source)
    chips += [_chip(probe, "bad", f"{probe} could not start: {why}") for probe, why in source.refused]
    return chips + [_chip(probe, "unknown", f"{probe} had to do without: {why}") for probe, why in source.missing]


def _clock(source: Source) -> Iterator[dict[str, Any]]:
    """Yield a chip where the wall clock was set by so much that times on the page's one axis are not the node's."""
    told = [
        f"by {duration(abs(ns))} {'forward' if ns > 0 else 'back'} at {moment(source.unix_ns(at - 1))}"
        for at, ns in source.clock_sets
        if abs(ns) >= _CLOCK_SET_NS
    ]
    if told:
        more = f", and {many(len(told) - _MOST_SETS, 'more time')}" if len(told) > _MOST_SETS else ""
        text = (
            f"The node's clock was set, or the node was suspended: {', '.join(told[:_MOST_SETS])}{more}. "
            "The time axis here goes on as the clock was at the start, and so does --range in UTC; "
            "the node's own logs don't."
        )
        yield _chip("clock", "bad", text)


def stack_quality(flame: Mapping[str, Any], summary: Summary) -> dict[str, Any]:
    """Return how complete the stacks of one probe are: what has no name, what was pruned, what was missed.

    Idle waits don't count: nobody looks at them, and an idle node has little else.
    """
    rest = flame["without_idle"]
    total = rest["total"] or 1.0
    which = "time without idle waits" if rest["total"] < flame["total"] else "time"
    parts = [f"{percent(rest['unnamed'] / total)} of the {which} is in functions without a name or has no stack"]
    if left_out := rest["pruned"] + flame["untold"]:
        parts.append(f"{percent(left_out / total)} is in pruned frames or left out")
    probe = flame["probe"]
    lost = missed(probe, summary.losses.reasons.get(probe, {}))
    lacking = stackless(summary, probe)
    parts += [one.told for one in lacking]
    parts += [f"{count(number)} {loss_meaning(probe, reason)}" for reason, number in lost.items()]
    state = "bad" if rest["unnamed"] > _UNNAMED * total or rest["pruned"] or lacking else "good"
    chip = _chip(f"{flame['title']} stacks", state, f"{'; '.join(parts)}.")
    where = [(module, count(number), duration(ns)) for module, number, ns in flame["unnamed"]]
    return {**chip, "table": {"title": "Without a name", "heads": _UNNAMED_HEADS, "rows": where}} if where else chip


def dropped(flames: Sequence[Mapping[str, Any]], timeline: Timeline, heat: Heat, lanes: Lanes) -> Iterator[str]:
    """Yield what the file does not hold of the recording, a sentence each."""
    if timeline.halvings:
        step, intervals = duration(timeline.bin_ns), many(2**timeline.halvings, "interval")
        yield f"Times are in steps of {step}, {intervals} of the recording each; marks are exact."
    for flame in flames:
        what, total = f"{flame['title']} stacks" if flame["probe"] else flame["title"], duration(flame["total"])
        if flame["longer"]:
            yield f"{what} are in steps of {duration(timeline.bin_ns << flame['longer'])}."
        if flame["pruned"]:
            yield f"{what}: {duration(flame['pruned'])} of {total} are in [pruned] frames."
        if flame["untold"]:
            yield f"{what}: {duration(flame['untold'])} of {total} are left out: too many different ones."
        if flame["cut_names"]:
            yield f"{what}: {many(flame['cut_names'], 'long name')} cut short."
        if flame["unkept"]:
            yield f"{what}: {many(flame['unkept'], 'stack or function')} had no room for their names."
    if heat.unkept:
        yield f"{many(heat.unkept, 'window')} of further series left out."
    if lanes.stalled.unkept:
        yield f"{many(lanes.stalled.unkept, 'account')} of further stalls left out."
    if lanes.unkept:
        yield f"{many(lanes.unkept, 'row')} of further CPUs left out."


def _chip(what: str, state: str, text: str) -> dict[str, Any]:
    return {"what": what, "state": state, "text": text}


def _told(normal: Normal) -> str:
    return f"{normal.question}: {normal.measured} (normal: {normal.limit})"
