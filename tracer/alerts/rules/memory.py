"""What the kernel does when memory is short: reclaim, and kill."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.alerts import kills, precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Severity, Subject
from tracer.alerts.histories import recent, total
from tracer.alerts.logpatterns import LINES
from tracer.alerts.rule import Rule, View
from tracer.units import SECOND, duration, many, memory, percent, rate

__all__ = ["RULES"]

_INFO, _EFFORT = kills.INFO, kills.EFFORT
_SUBJECT = Subject("memory")


def _reclaim(view: View) -> Iterator[Condition]:
    windows, seconds = recent(view, _EFFORT, limits.RECLAIM_SPAN_NS)
    if seconds < 0.9 * limits.RECLAIM_SPAN_NS / SECOND:
        return
    stalls = total(windows, "allocation_stalls") / seconds
    some, full = (total(windows, name) / (seconds * SECOND) for name in ("some_ns", "full_ns"))
    measured = "some_ns" in (windows[-1].rows.dtype.names or ())
    if measured and (stalls < limits.RECLAIM_STALLS or some < limits.RECLAIM_SOME):
        return
    if not measured and stalls < limits.RECLAIM_STALLS_ALONE:
        return
    waits = f"; tasks wait for memory {percent(some)} of the time, all of them {percent(full)}" if measured else ""
    yield Condition(
        _SUBJECT,
        Severity.PAGE if full >= limits.RECLAIM_FULL else Severity.WARNING,
        f"{rate(stalls)} allocations have to free memory first{waits}",
        windows[0].start_ns,
        {"stalls_per_s": stalls, "some_share": some, "full_share": full},
    )


def _oom(view: View) -> Iterator[Condition]:
    killing = kills.unnamed(view)
    if not killing:
        return
    severity, left = kills.severity(view, killing)
    whose = "a cgroup reached its limit" if severity is Severity.INFO else "the node is out of memory"
    deadly = " (vm.panic_on_oom=2 panics on these)" if view.number("vm.panic_on_oom", 0) == 2 else ""
    count = int(total(killing, "oom_kills"))
    yield Condition(
        _SUBJECT,
        severity,
        f"{many(count, 'task')} killed for lack of memory in the last minute: {whose}{deadly}, {memory(left)} left",
        killing[0].start_ns,
        {"kills": count, "left_bytes": left},
    )


RULES = (
    Rule(
        name="reclaim-storm",
        title="memory has to be freed before it can be used",
        help=f"""
Allocations of the whole node stop to free memory first, and tasks wait for it: everything is slow, and the OOM killer
is next. A page cache full of files is no storm, nor is a cgroup at its own limit.

Severity: warning from {limits.RECLAIM_STALLS} such allocations a second together with {percent(limits.RECLAIM_SOME)}
of the time in which some task waits (PSI; without it, {limits.RECLAIM_STALLS_ALONE} a second), over
{duration(limits.RECLAIM_SPAN_NS)}; page when all tasks wait for {percent(limits.RECLAIM_FULL)} of it.
""",
        next="end or move what took the memory; foreshock top shows the cgroups, /proc/meminfo the rest",
        judge=_reclaim,
        needs=(_EFFORT,),
        history=(_EFFORT,),
    ),
    Rule(
        name="oom-kill",
        title="tasks are killed for lack of memory",
        help=f"""
The OOM killer has ended tasks in the last minute, and neither a tracepoint nor the kernel's log has said which: those
are told by the alert oom-victim. It is judged an interval later, when either would have come. With more than
{percent(limits.OOM_LEFT)} of the node's memory left it was a cgroup's own limit.

Severity: info for a cgroup's limit, warning for the node's memory, page from {limits.OOM_KILLS_PAGE} kills in a minute.

Countdown: none; with `vm.panic_on_oom=1` the node would have panicked instead of the first kill of its own.
""",
        next="find the victims in the kernel log (dmesg), and what filled the memory; restart what was killed",
        judge=_oom,
        needs=(_EFFORT,),
        wants=(_INFO, precursors.TOLD, LINES),
        history=(_EFFORT, precursors.TOLD, LINES),
        keep_ns=limits.RECENT_NS,
    ),
)
