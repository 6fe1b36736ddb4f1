"""What the report says, as text: findings, tables, what happened when, and what changed against a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracer.analysis.idle import IdleTime
from tracer.analysis.verdict import judge
from tracer.compare.facts import differences, flattened
from tracer.reports import text
from tracer.reports.html.events import marks
from tracer.reports.html.payload import Payload
from tracer.reports.occasion import judged, with_sign
from tracer.reports.sections import Section
from tracer.reports.sections.changes import changed_cpus, changed_latencies, changed_setup, seconds
from tracer.reports.sections.functions import changed_functions, functions
from tracer.reports.sections.happened import happened
from tracer.reports.story import Sign
from tracer.units import duration, percent

__all__ = ["Side", "render", "settings"]


@dataclass(frozen=True)
class Side:
    """One recording: what was gathered of it, its alerts, its name, what is missing of it."""

    payload: Payload
    signs: Sequence[Sign]
    name: str = ""
    warning: str = ""


def settings(now: Payload, before: Payload) -> list[tuple[str, str, str]]:
    """Return the rows of the fingerprint in which two recordings differ: (name, now, before)."""
    rows = differences([flattened(now.header)], [flattened(before.header)])
    return [(one.name, one.values[0], one.usual) for one in rows]


def render(now: Side, before: Side | None = None, *, width: int = 80, color: bool = False) -> list[str]:
    """Return the report as lines of at most ``width`` (at least 40) cells."""
    payload = now.payload
    return text.render(
        payload.summary,
        judged(payload.summary, payload.alert, payload.told),
        payload.source,
        title=now.name,
        warning=now.warning,
        width=width,
        color=color,
        first=[*filter(None, _changes(now, before))] if before else [],
        last=[*filter(None, _more(now))],
    )


def _changes(now: Side, before: Side) -> Iterator[Section | None]:
    old, young = before.payload, now.payload
    about = f"{before.name} of {old.source.host or 'unknown host'}: {judge(old.summary).headline}"
    warning = [f"WARNING: {before.warning}"] if before.warning else []
    yield Section("BASELINE", (), (), notes=[about, *warning, "Rates and stacks are per second."])
    yield changed_latencies(old.summary, young.summary)
    yield changed_cpus(old.summary, young.summary)
    lengths = seconds(old.summary), seconds(young.summary)
    found = old.graphs.functions()
    for title, spent in young.graphs.functions().items():
        if title in found:
            note = _without(young.graphs.hidden(title), old.graphs.hidden(title))
            yield changed_functions(title, found[title], spent, lengths, young.graphs.sample_ns(title), note)
    yield changed_setup(settings(young, old))


def _more(now: Side) -> Iterator[Section | None]:
    yield happened(
        [*marks(now.payload.summary, now.payload.source, with_sign(now.signs, now.payload.alert))], now.payload.source
    )
    for title, spent in now.payload.graphs.functions().items():
        yield functions(title, spent, _without(now.payload.graphs.hidden(title)))


def _without(now: IdleTime | None, before: IdleTime | None = None) -> str:
    """Say what functions leave out."""
    told = [
        f"{percent(one.share)} of {duration(one.total_ns)}{where}"
        for one, where in ((now, ""), (before, " in the baseline"))
        if one and one.ns
    ]
    return f"Without idle waits: {', '.join(told)}. --idle shows them." if told else ""
