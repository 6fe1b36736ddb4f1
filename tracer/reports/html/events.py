"""What stands out, and what happened when: findings with their moment, alerts, the worst single events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracer.alerts.alert import State
from tracer.alerts.record import alert_record
from tracer.analysis.finding import Finding
from tracer.analysis.names import vector
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import Verdict
from tracer.reports.occasion import BEGAN_NS
from tracer.reports.story import Sign
from tracer.units import duration, percent

__all__ = ["findings", "marks"]

#: Where the single events of what a rule judges are, and the ``kind`` they have there.
_EVENTS: Mapping[str, tuple[tuple[str, str], int | None]] = {
    "runqueue.wait": (("runqueue", "worst"), None),
    "runqueue.worst": (("runqueue", "worst"), None),
    "softirq.delay": (("softirq", "worst"), 1),
    "softirq.run": (("softirq", "worst"), 2),
    "cpustall.stall": (("cpustall", "stalls"), None),
}
_EVENT_TABLES = (("runqueue", "worst"), ("softirq", "worst"), ("cpustall", "stalls"))


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
            # What was recorded because of an alert is looked at from when that began to the end.
            "until_ns": summary.intervals.end_ns if BEGAN_NS in one.values else None,
        }
        for one in verdict.things
    ]


def _time_of(finding: Finding, summary: Summary) -> int | None:
    if isinstance(began_ns := finding.values.get(BEGAN_NS), int):
        return began_ns
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
