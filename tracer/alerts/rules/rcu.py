"""Grace periods of RCU that do not end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracer.alerts import culprits, deadlines, precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Countdown, Culprit, Severity, Subject
from tracer.alerts.deadlines import Budget
from tracer.alerts.logpatterns import LINES, found
from tracer.alerts.rule import Rule, View
from tracer.units import SECOND, duration

__all__ = ["RULES"]

_GRACE, _COUNTS = ("rcu", "grace"), ("detectors", "counts")
_STALLS, _OPEN = ("cpustall", "stalls"), ("cpustall", "open")
_SUBJECT = Subject("node", "rcu")


@dataclass(frozen=True)
class _Held:
    """The CPU that has been held up for longest, since when, and by whom; ``told``: the same as part of a sentence."""

    since_ns: int
    culprit: Culprit
    told: str


def _stall(view: View) -> Iterator[Condition]:
    window = view.windows[_GRACE]
    begun_ns, waiting_ns = int(window.rows["begun_ns"][0]), int(window.rows["age_ns"][0])
    if not waiting_ns:
        return
    held, since_ns, early_ns = _held(view), begun_ns, 0
    if held and held.since_ns < begun_ns and waiting_ns >= limits.RCU_HELD_WAIT_NS:
        # None has ended since that CPU was held up; ours came later. At the next look it would be late to say so.
        since_ns, early_ns = held.since_ns, window.end_ns - window.start_ns
    age_ns = window.end_ns - since_ns
    budget = deadlines.rcu_stall(view, _seen(view))
    if age_ns + early_ns < budget.quarter_ns(limits.RCU_WARN_NS):
        return
    page = budget.panics_ns is not None or (budget.logs_ns is not None and age_ns >= budget.logs_ns // 2)
    yield Condition(
        _SUBJECT,
        Severity.PAGE if page else Severity.WARNING,
        f"a grace period of RCU has not ended for {duration(age_ns)} (usual: some 10 ms)"
        f"{held.told if held else ''}{budget.remark}",
        since_ns,
        {"grace_period_s": age_ns / SECOND},
        held.culprit if held else None,
        budget.countdown(since_ns),
    )


def _warning(view: View) -> Iterator[Condition]:
    rows = precursors.told(view, "rcu_stall")
    lines = found(view, "rcu-stall-warning")
    if not len(rows) and not lines:
        return
    since_ns = min([*(int(row["time_ns"]) for row in rows), *(line.time_ns for line in lines)])
    flavour = precursors.name(rows[0]) if len(rows) else lines[0].groups["name"]
    held = _held(view)
    yield Condition(
        _SUBJECT,
        Severity.PAGE,
        f"the kernel reports an RCU stall ({flavour}){held.told if held else ''}",
        since_ns,
        {"reports": max(len(rows), len(lines))},
        held.culprit if held else None,
        _next_act(deadlines.rcu_stall(view), since_ns),
    )


def _next_act(budget: Budget, reported_ns: int) -> Countdown | None:
    """Return the countdown after the first report: at once, or with a later one (max_rcu_stall_to_panic)."""
    if budget.panics_ns is None or budget.logs_ns is None:
        return None
    return Countdown(budget.detector, reported_ns + budget.panics_ns - budget.logs_ns, True, budget.setting)


def _held(view: View) -> _Held | None:
    told, still = view.windows.get(_STALLS), view.windows.get(_OPEN)
    if told is not None and len(told.rows):
        row = told.rows[told.rows["duration_ns"].argmax()]
        since_ns, culprit = int(row["since_ns"]), culprits.of_stall(row, view)
        place = culprits.where(culprit, view, row)
    elif still is not None and len(held := still.rows[still.rows["kind"] != b"runnable"]):
        row = held[held["age_ns"].argmax()]
        since_ns, culprit, place = still.end_ns - int(row["age_ns"]), culprits.of_open(row), ""
    else:
        return None
    return _Held(since_ns, culprit, f"; CPU {int(row['cpu'])} is held up{f' by {place}' if place else ''}")


def _seen(view: View) -> int:
    """Return how many stalls the kernel has reported since boot, where it counts them (since v6.16)."""
    window = view.windows.get(_COUNTS)
    return int(window.rows["total"][window.rows["name"] == b"rcu_stall"].sum()) if window else 0


RULES = (
    Rule(
        name="rcu-stall",
        title="RCU's grace period does not end",
        help=f"""
A wait for a grace period goes on: some CPU has not passed through the scheduler, or a task does not leave its
read-side section. Memory that was to be freed piles up, and whoever waits for RCU hangs.

Severity: warning from {duration(limits.RCU_WARN_NS)}, or a quarter of the kernel's own budget where that is shorter,
and an interval earlier where a CPU is held up; page from half of the budget, or if it ends in a panic
(`kernel.panic_on_rcu_stall`).

Countdown: the kernel reports after `rcupdate.rcu_cpu_stall_timeout` (21 s; up to 300) and every three times that
again; it panics with the first report, or the N-th since boot (`kernel.max_rcu_stall_to_panic`). Where a CPU is held
up, the time counts from then; otherwise from the wait, which may have begun up to 5 s later. Nothing is known while
`kernel.hung_task_panic` is set: then nobody waits.
""",
        next="look for a CPU that is held up (alerts soft-lockup, hard-lockup); stop new work, save state elsewhere",
        judge=_stall,
        needs=(_GRACE,),
        wants=(_STALLS, _OPEN, _COUNTS),
        echoes=("rcu-stall-warning",),
    ),
    Rule(
        name="rcu-stall-warning",
        title="the kernel reports an RCU stall",
        help="""
The kernel's own detector speaks. With `kernel.panic_on_rcu_stall` the panic follows when the stacks are printed.

Severity: page; warning where rcu-stall has paged it.

Countdown: at once, or until the next reports with `kernel.max_rcu_stall_to_panic`.
""",
        next="save state elsewhere; dmesg has the stacks of the CPUs that do not answer",
        judge=_warning,
        needs=(),
        wants=(precursors.TOLD, LINES, _STALLS, _OPEN),
        echoes=("rcu-stall",),
        fast=True,
        keep_ns=limits.RECENT_NS,
    ),
)
