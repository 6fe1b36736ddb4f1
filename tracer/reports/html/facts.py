"""What a report says in words: whose recording it is, how far to trust it, what stands out, what happened when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracer.alerts.alert import State
from tracer.alerts.record import alert_record
from tracer.analysis.finding import Finding, Normal
from tracer.analysis.losses import missed
from tracer.analysis.names import vector
from tracer.analysis.rules.quality import intervals, losses, own_use, unseen
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import Verdict
from tracer.reports.story import Sign
from tracer.reports.text import loss_meaning
from tracer.units import count, duration, moment, percent

__all__ = ["facts", "findings", "marks", "quality", "stack_quality"]

#: Where the single events of what a rule judges are, and the ``kind`` they have there.
_EVENTS: Mapping[str, tuple[tuple[str, str], int | None]] = {
    "runqueue.wait": (("runqueue", "worst"), None),
    "runqueue.worst": (("runqueue", "worst"), None),
    "softirq.delay": (("softirq", "worst"), 1),
    "softirq.run": (("softirq", "worst"), 2),
    "cpustall.stall": (("cpustall", "stalls"), None),
}
_EVENT_TABLES = (("runqueue", "worst"), ("softirq", "worst"), ("cpustall", "stalls"))
_QUALITY = (
    ("lost events", losses),
    ("context switches", unseen),
    ("intervals", intervals),
    ("own cost", own_use),
)
#: Of a flame graph's time, in functions without a name or in stacks that were not taken.
_UNNAMED = 0.1
_MOST_FACTS = 600
_LONGEST = 300
_DEEPEST = 12


def facts(summary: Summary, source: Source, header: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return whose recording it is as (what, value), the most telling first."""
    seen = summary.intervals
    start, end = source.unix_ns(seen.start_ns), source.unix_ns(seen.end_ns)
    probes = header.get("probes")
    names = (
        [one["name"] for one in probes if isinstance(one, dict) and "name" in one] if isinstance(probes, list) else []
    )
    return [
        ("host", source.host or "unknown"),
        ("time", f"{moment(start)} to {moment(end)}" if start == start else "wall clock unknown"),
        ("length", f"{duration(seen.ns)}, {seen.count} intervals of {duration(seen.typical_ns)}"),
        ("kernel", f"Linux {source.kernel} {source.architecture}".strip()),
        ("CPUs", str(source.cpus or "unknown")),
        ("boot", source.boot_id or "unknown"),
        ("recorded by", f"foreshock {source.version}"),
        ("filters", ", ".join(f"{name} {value}" for name, value in source.filters) or "none: everything"),
        ("probes", ", ".join(map(str, names)) or "unknown"),
        ("stack sampling", f"{source.sample_hz:g} Hz on each CPU" if summary.seen("oncpu") else "not recorded"),
    ]


def fingerprint(header: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the node is and how it is set up, as (path, value)."""
    found = []
    for path, value in _leaves(header.get("fingerprint"), ()):
        found.append((".".join(path), str(value)[:_LONGEST]))
        if len(found) == _MOST_FACTS:
            break
    return found


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
    chips += [_chip(probe, "bad", f"{probe} could not start: {why}") for probe, why in source.refused]
    return chips + [_chip(probe, "unknown", f"{probe} had to do without: {why}") for probe, why in source.missing]


def stack_quality(flame: Mapping[str, Any], summary: Summary) -> dict[str, Any]:
    """Return how complete the stacks of one probe are: what has no name, what was pruned, what was missed."""
    unnamed = flame["unknown"] / flame["total"] if flame["total"] else 0.0
    parts = [f"{percent(unnamed)} of the time is in functions without a name or has no stack"]
    if flame["pruned"] or flame["untold"]:
        parts.append(f"{percent((flame['pruned'] + flame['untold']) / flame['total'])} is in pruned frames or left out")
    probe = flame["probe"]
    lost = missed(probe, summary.losses.reasons.get(probe, {}))
    parts += [f"{count(number)} {loss_meaning(probe, reason)}" for reason, number in lost.items()]
    state = "bad" if unnamed > _UNNAMED or flame["pruned"] else "good"
    return _chip(f"{flame['title']} stacks", state, f"{'; '.join(parts)}.")


def _chip(what: str, state: str, text: str) -> dict[str, Any]:
    return {"what": what, "state": state, "text": text}


def _told(normal: Normal) -> str:
    return f"{normal.question}: {normal.measured} (normal: {normal.limit})"


def findings(summary: Summary, verdict: Verdict) -> list[dict[str, Any]]:
    """Return what stands out, each with the series that shows it and the time of its worst event, if there is one."""
    return [
        {
            "severity": one.severity.name.lower(),
            "topic": one.topic,
            "what": one.what,
            "who": one.who,
            "next": one.next,
            "anchor": one.anchor,
            "series": one.rule,
            "time_ns": _time_of(one, summary),
        }
        for one in verdict.things
    ]


def _time_of(finding: Finding, summary: Summary) -> int | None:
    table, kind = _EVENTS.get(finding.rule, (None, None))
    worst = summary.events(*table) if table else None
    for event in worst.events if worst else ():
        if "time_ns" in event and kind in (None, event.get("kind")) and _is_of(event, finding):
            return int(event["time_ns"])
    return None


def _is_of(event: Mapping[str, Any], finding: Finding) -> bool:
    """Return whether a single event is on a CPU, and of a vector, that a finding is about."""
    cpus, vectors = finding.values.get("cpus"), finding.values.get("vectors")
    on_cpu = not isinstance(cpus, list) or not cpus or event.get("cpu") in cpus
    return on_cpu and (not isinstance(vectors, list) or vector(int(event.get("vector", -1))) in vectors)


def marks(summary: Summary, source: Source, signs: Sequence[Sign]) -> Iterator[dict[str, Any]]:
    """Yield what has a moment: alerts as they would have been told, and the worst single events."""
    for sign in signs:
        latest = sign.latest
        yield {
            "kind": "alert",
            "start_ns": sign.first.began_ns,
            "end_ns": latest.at_ns,
            "over": latest.state is State.RESOLVED,
            "text": sign.first.condition.summary,
            "alert": alert_record(latest),
        }
    for table in _EVENT_TABLES:
        worst = summary.events(*table)
        for event in worst.events if worst else ():
            if "time_ns" in event:
                yield {
                    "kind": ".".join(table),
                    "start_ns": int(event["time_ns"]) - int(event[worst.size]) if worst else 0,
                    "end_ns": int(event["time_ns"]),
                    "text": _event(table, event, source),
                    "cpu": event.get("waited_cpu", event.get("cpu")),
                }


def _event(table: tuple[str, str], event: Mapping[str, Any], source: Source) -> str:
    task = source.task(str(event.get("comm", "")), int(event.get("pid", 0)), int(event.get("tgid", 0)))
    if table == ("runqueue", "worst"):
        waited, holder_ns = int(event["wait_ns"]), int(event.get("holder_ns", 0))
        text = f"{task} waited {duration(waited)} for CPU {event.get('waited_cpu', event['cpu'])}"
        if not holder_ns:
            return text
        holder = source.task(str(event.get("holder_comm", "")), int(event.get("holder_pid", 0)))
        return f"{text}; {holder} had {percent(min(1.0, holder_ns / max(waited, 1)))} of it"
    length = duration(int(event["duration_ns"]))
    if table == ("softirq", "worst"):
        what = f"softirq {vector(int(event['vector']))} on CPU {event['cpu']}"
        return (
            f"{what} ran for {length}"
            if event.get("kind") == 2
            else f"{what} started {length} late; {task} had the CPU"
        )
    return f"CPU {event['cpu']} made no progress for {length}; {task} ran"


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if len(path) == _DEEPEST:
        yield path, "…"
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)[:64]))
    elif isinstance(value, (list, tuple)) and any(isinstance(one, (Mapping, list, tuple)) for one in value):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(place)))
    else:
        yield path, ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
