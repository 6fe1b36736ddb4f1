"""Grace periods of RCU that do not end."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.alerts import culprits, deadlines, precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Countdown, Culprit, Severity, Subject
from tracer.alerts.deadlines import Budget
from tracer.alerts.logpatterns import LINES, found
from tracer.alerts.rule import Rule, View
from tracer.units import duration

__all__ = ["RULES"]

_SECOND = 1_000_000_000
_GRACE, _COUNTS = ("rcu", "grace"), ("detectors", "counts")
_STALLS, _OPEN = ("cpustall", "stalls"), ("cpustall", "open")
_SUBJECT = Subject("node", "rcu")


def _stall(view: View) -> Iterator[Condition]:
    row = view.rows(*_GRACE)[0]
    age_ns = int(row["age_ns"])
    budget = deadlines.rcu_stall(view, _seen(view))
    if age_ns < budget.quarter_ns(limits.RCU_WARN_NS):
        return
    culprit, cpu = _culprit(view)
    page = budget.panics_ns is not None or (budget.logs_ns is not None and age_ns >= budget.logs_ns // 2)
    yield Condition(
        _SUBJECT,
        Severity.PAGE if page else Severity.WARNING,
        f"a grace period of RCU has not ended for {duration(age_ns)} (usual: some 10 ms){cpu}{budget.remark}",
        int(row["begun_ns"]),
        {"grace_period_s": age_ns / _SECOND},
        culprit,
        budget.countdown(int(row["begun_ns"])),
    )


def _warning(view: View) -> Iterator[Condition]:
    rows = precursors.told(view, "rcu_stall")
    lines = found(view, "rcu-stall-warning")
    if not len(rows) and not lines:
        return
    since_ns = min([*(int(row["time_ns"]) for row in rows), *(line.time_ns for line in lines)])
    flavour = precursors.name(rows[0]) if len(rows) else lines[0].groups["name"]
    culprit, cpu = _culprit(view)
    yield Condition(
        _SUBJECT,
        Severity.PAGE,
        f"the kernel reports an RCU stall ({flavour}){cpu}",
        since_ns,
        {"reports": max(len(rows), len(lines))},
        culprit,
        _next_act(deadlines.rcu_stall(view), since_ns),
    )


def _next_act(budget: Budget, reported_ns: int) -> Countdown | None:
    """Return the countdown after the first report: at once, or with a later one (max_rcu_stall_to_panic)."""
    if budget.panics_ns is None or budget.logs_ns is None:
        return None
    return Countdown(budget.detector, reported_ns + budget.panics_ns - budget.logs_ns, True, budget.setting)


def _culprit(view: View) -> tuple[Culprit | None, str]:
    """Return who holds the CPU that is held up for longest, and that in words; nobody if none is."""
    told, still = view.windows.get(_STALLS), view.windows.get(_OPEN)
    if told is not None and len(told.rows):
        row = told.rows[told.rows["duration_ns"].argmax()]
        culprit = culprits.of_stall(row, view)
        place = culprits.where(culprit, view, row)
    elif still is not None and len(held := still.rows[still.rows["kind"] != b"runnable"]):
        row = held[held["age_ns"].argmax()]
        culprit, place = culprits.of_open(row), ""
    else:
        return None, ""
    return culprit, f"; CPU {int(row['cpu'])} is held up{f' {place}' if place else ''}"


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

Severity: warning from {duration(limits.RCU_WARN_NS)}, or a quarter of the kernel's own budget where that is shorter;
page from half of it, or if it ends in a panic (`kernel.panic_on_rcu_stall`).

Countdown: the kernel reports after `rcupdate.rcu_cpu_stall_timeout` (21 s; up to 300) and every three times that
again; it panics with the first report, or the N-th since boot (`kernel.max_rcu_stall_to_panic`). The wait began after
the grace period before, so it may be up to 5 s less. Nothing is known while `kernel.hung_task_panic` is set: then
nobody waits.
""",
        next="look for a CPU that is held up (alerts soft-lockup, hard-lockup); stop new work, save state elsewhere",
        judge=_stall,
        needs=(_GRACE,),
        wants=(_STALLS, _OPEN, _COUNTS),
    ),
    Rule(
        name="rcu-stall-warning",
        title="the kernel reports an RCU stall",
        help="""
The kernel's own detector speaks. With `kernel.panic_on_rcu_stall` the panic follows when the stacks are printed.

Severity: page.

Countdown: at once, or until the next reports with `kernel.max_rcu_stall_to_panic`.
""",
        next="save state elsewhere; dmesg has the stacks of the CPUs that do not answer",
        judge=_warning,
        needs=(),
        wants=(precursors.TOLD, LINES, _STALLS, _OPEN),
        fast=True,
        keep_ns=limits.RECENT_NS,
    ),
)
