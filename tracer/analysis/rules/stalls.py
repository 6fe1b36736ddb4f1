"""Did a CPU stop making progress, or its watchdog come close to saying so?"""

from __future__ import annotations

from typing import Any

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.intervals import CLOCK_LATE
from tracer.analysis.names import cpu_list
from tracer.analysis.rules.deeper import look
from tracer.analysis.rules.unasked import not_recorded
from tracer.analysis.summary import Summary
from tracer.units import at_most, duration, many

__all__ = ["stalls", "watchdog_feed"]

Event = dict[str, Any]


def stalls(summary: Summary) -> Outcome:
    """Judge ``cpustall.stalls`` and ``.open``: every stall is worth a sentence, one per CPU; so are starving tasks."""
    worst, still = summary.events("cpustall", "stalls"), summary.events("cpustall", "open")
    if summary.table("cpustall", "stall") is None and worst is None:
        return not_recorded("stalled CPUs", "cpustall", summary)
    by_cpu: dict[int, list[Event]] = {}
    for event in worst.events if worst else []:
        if int(event["duration_ns"]) >= thresholds.STALL_NS:
            by_cpu.setdefault(int(event["cpu"]), []).append(event)
    findings = [_stall(cpu, events, summary) for cpu, events in sorted(by_cpu.items())]
    for event in still.events if still else []:
        starving = event["kind"] == "runnable"
        if starving or int(event["cpu"]) not in by_cpu:
            findings.append(_open(event, starving, summary))
    return outcome(findings, "stalled CPUs", "none", f"none over {duration(thresholds.STALL_NS)}")


def watchdog_feed(summary: Summary) -> Outcome:
    """Judge ``cpustall.feed``: the delay that the kernel's soft lockup detector panics on."""
    table = summary.table("cpustall", "feed")
    if table is None:
        return not_recorded("the watchdog's delay", "cpustall", summary)
    cpus = {int(cpu): group.statistics for (cpu,), group in table.groups("cpu").items()}
    late = [cpu for cpu, one in cpus.items() if one.max_ns > thresholds.FEED_WORST_NS]
    everything = table.total().statistics
    if not everything.count:
        return missing("the watchdog's delay: it was not fed while recording (it is every 4 s, or switched off)")
    allowed = f"under {duration(thresholds.FEED_WORST_NS)}"
    if not late:
        return outcome([], "watchdog's delay", at_most(everything.max_ns), allowed)
    worst_ns = max(cpus[cpu].max_ns for cpu in late)
    finding = Finding(
        rule="cpustall.feed",
        topic="late watchdog",
        severity=Severity.CRITICAL if worst_ns > thresholds.FEED_CRITICAL_NS else Severity.WARNING,
        subject=cpu_list(late),
        what=(
            f"{cpu_list(late)}: the kernel's watchdog was fed {at_most(worst_ns)} late (normal: {allowed}; at "
            "about 24 s the kernel reports a soft lockup and, if told to, panics)."
        ),
        who="Its thread has the highest priority: only interrupts or code that cannot be preempted hold it up.",
        next=f"see stalls and softirqs of that CPU; {look(summary, 'the code')}",
        anchor="watchdog",
        value=worst_ns / 1e9,
        threshold=thresholds.FEED_WORST_NS / 1e9,
        unit="s",
        values={"cpus": late},
    )
    return Outcome(findings=(finding,))


def _stall(cpu: int, events: list[Event], summary: Summary) -> Finding:
    first = events[0]
    longest, context = int(first["duration_ns"]), str(first.get("context", ""))
    # One that lasts is told again in every interval, growing, from the same beginning.
    stalls_seen = len({int(event.get("since_ns", number)) for number, event in enumerate(events)})
    again = f", {many(stalls_seen, 'time')}" if stalls_seen > 1 else ""
    comm, pid = str(first.get("comm", "")), int(first.get("pid", 0))
    late = int(first.get("evidence", 0)) == CLOCK_LATE
    return Finding(
        rule="cpustall.stall",
        topic="no progress",
        severity=Severity.CRITICAL,
        subject=f"CPU {cpu}",
        what=(
            f"CPU {cpu}: no progress for {duration(longest)}{again}{f', in {context}' if context else ''} (normal: "
            f"under {duration(thresholds.STALL_NS)}; the kernel calls it a soft lockup at about 24 s)."
        ),
        who=(f"{summary.source.task(comm, pid)} was on the CPU." if comm or pid else "")
        + (" Interrupts were off, or this virtual CPU was paused: both look the same." if late else ""),
        next=f"save work on this node; {look(summary, 'the code')}; the kernel log tells the panic settings",
        anchor="stalls",
        value=longest / 1e9,
        threshold=thresholds.STALL_NS / 1e9,
        unit="s",
        values={"cpu": cpu, "comm": comm, "pid": pid, "context": context, "stalls": len(events)},
    )


_OPEN = {
    "stall": "no progress",
    "softirq": "a softirq that does not end",
    "hardirq": "a hard interrupt that does not end",
    "heartbeat": "no interrupt was taken",
}


def _open(event: Event, starving: bool, summary: Summary) -> Finding:
    """What another CPU saw that had not ended: the stuck CPU itself may be unable to say so."""
    cpu, age, kind = int(event["cpu"]), int(event["age_ns"]), str(event["kind"])
    name = summary.source.task(str(event.get("comm", "")), int(event.get("pid", 0)))
    limit = f"normal: under {duration(thresholds.STALL_NS)}"
    what = f"{name} was runnable for {duration(age)} and still did not run" if starving else _OPEN.get(kind, kind)
    since = "" if starving else f" for {duration(age)}, and not over"
    return Finding(
        rule=f"cpustall.{'starving' if starving else 'open'}",
        topic="a task that starves" if starving else "stuck and not over",
        severity=Severity.WARNING if starving else Severity.CRITICAL,
        subject=f"CPU {cpu}",
        what=f"CPU {cpu}: {what}{since} ({limit}).",
        who="" if starving else f"{name} was on the CPU.",
        next=look(summary, "what holds the CPU") if starving else "save work on this node",
        anchor="stalls",
        value=age / 1e9,
        threshold=thresholds.STALL_NS / 1e9,
        unit="s",
        values={"cpu": cpu, "kind": kind, "comm": event.get("comm", ""), "pid": event.get("pid", 0)},
    )
