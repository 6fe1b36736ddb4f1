"""The kernel's own word that something is wrong: warnings, oopses, reports of its detectors, taints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tracer.alerts import deadlines, precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Countdown, Severity, Subject
from tracer.alerts.histories import latest
from tracer.alerts.logpatterns import LINES
from tracer.alerts.rule import Rule, View
from tracer.units import duration, many, percent
from tracer.window import Window

__all__ = ["RULES"]

_COUNTS = ("detectors", "counts")

#: What each count counts, and how bad one of them is.
_MEANINGS = {
    "warn": ("kernel warning", Severity.WARNING),
    "oops": ("oops report", Severity.PAGE),
    "softlockup": ("soft lockup report", Severity.PAGE),
    "hardlockup": ("hard lockup report", Severity.PAGE),
    "rcu_stall": ("RCU stall report", Severity.PAGE),
    "hung_task": ("hung task report", Severity.WARNING),
}
#: What other rules tell of the same reports: soft-lockup and hard-lockup, lockup-report, rcu-stall-warning.
_OPEN = ("cpustall", "open")
_TELL_MORE = {
    "softlockup": (_OPEN, LINES),
    "hardlockup": (_OPEN, LINES),
    "rcu_stall": (precursors.TOLD, LINES),
}
#: The limits at which the kernel panics; source: check_panic_on_warn() in kernel/panic.c, make_task_dead().
_LIMITS = {"warn": "kernel.warn_limit", "oops": "kernel.oops_limit"}
# Bits of /proc/sys/kernel/tainted that say that something went wrong. Warnings and oopses are counted above, where
# this kernel counts them. Source: Documentation/admin-guide/tainted-kernels.rst.
_TAINTS = {
    4: ("a machine check", Severity.PAGE, ""),
    5: ("a page in a bad state", Severity.PAGE, ""),
    7: ("an oops", Severity.PAGE, "oops"),
    9: ("a warning", Severity.WARNING, "warn"),
    14: ("a soft lockup", Severity.PAGE, "softlockup"),
}


def _judge(view: View) -> Iterator[Condition]:
    recent = latest(view, _COUNTS, lambda window: window.end_ns > view.now_ns - limits.RECENT_NS)
    # Nearly always there is nothing new: one look at all of them together.
    if not recent or not np.concatenate([window.rows["new"] for window in recent]).any():
        return
    totals = {bytes(row["name"]).decode(): int(row["total"]) for row in view.rows(*_COUNTS)}
    for name in _MEANINGS.keys() & totals.keys():
        news = [(window, new) for window in recent if (new := _new(window, name))]
        if news:
            yield _counted(view, name, totals[name], news)
    yield from _tainted(view, recent, totals)


def _counted(view: View, name: str, total: int, news: Sequence[tuple[Window, int]]) -> Condition:
    what, severity = _MEANINGS[name]
    severity = _paged(view, name, severity)
    new, began_ns = sum(number for _, number in news), news[0][0].start_ns
    limit = view.number(_LIMITS[name], 0) if name in _LIMITS else 0
    countdown = _to_limit(view, name, limit - total, new, began_ns) if limit > 0 else None
    soon = countdown is not None and countdown.latest_ns - view.now_ns < limits.LIMIT_NS
    near = limit > 0 and total >= limits.LIMIT_SHARE * limit
    then = f"; at {limit} it panics and {deadlines.after_panic(view)}" if near or soon else ""
    return Condition(
        Subject("node", name),
        Severity.PAGE if near or soon else severity,
        f"{many(new, what)} in the last minute, {total} since boot{then}",
        began_ns,
        {"new": new, "total": total},
        countdown=countdown if near or soon else None,
    )


def _to_limit(view: View, name: str, left: int, new: int, began_ns: int) -> Countdown | None:
    """Return the countdown to the limit at the pace since ``began_ns``; None of a few, which are no pace."""
    elapsed_ns = view.now_ns - began_ns
    if new < limits.PACE_LEAST or elapsed_ns < limits.PACE_LEAST_NS:
        return None
    setting = ", ".join(f"{each}={view.settings.get(each, '?')}" for each in (_LIMITS[name], "kernel.panic"))
    return Countdown(f"limit of {name}s", view.now_ns + max(left, 0) * elapsed_ns // new, True, setting)


def _paged(view: View, name: str, severity: Severity) -> Severity:
    """Return a report's severity: a page is another rule's where that one sees more than a number."""
    return Severity.WARNING if any(table in view.windows for table in _TELL_MORE.get(name, ())) else severity


def _tainted(view: View, recent: Sequence[Window], totals: dict[str, int]) -> Iterator[Condition]:
    for bit, (what, severity, counted) in _TAINTS.items():
        since = [window.start_ns for window in recent if _new(window, "taint") >> bit & 1]
        if since and counted not in totals:
            summary = f"the kernel was tainted by {what} (bit {bit} of kernel.tainted)"
            yield Condition(Subject("node", f"taint {bit}"), _paged(view, counted, severity), summary, since[0])


def _new(window: Window, name: str) -> int:
    rows = window.rows[window.rows["name"] == name.encode()]
    return int(rows["new"][0]) if len(rows) else 0


RULES = (
    Rule(
        name="kernel-warnings",
        title="the kernel complains",
        help=f"""
The kernel has counted warnings, oopses or reports of its own detectors, or has tainted itself for one, in the last
minute. After an oops its state is suspect: locks may be held for ever by the task that died.

Severity: warning for warnings and hung tasks; page for oopses, machine checks and bad pages, for lockups and RCU stalls
where no other alert names them (soft-lockup, hard-lockup, lockup-report, rcu-stall-warning), and
from {percent(limits.LIMIT_SHARE)} of `kernel.warn_limit` or `kernel.oops_limit`, or {duration(limits.LIMIT_NS)} before.

Countdown: to the limit, where one is set, at the pace of the last minute: of {limits.PACE_LEAST} and more, in
{duration(limits.PACE_LEAST_NS)} and more. With `kernel.panic_on_warn` or
`kernel.panic_on_oops` the first is the last: there is nothing to count.
""",
        next="read the kernel log (dmesg) for the first of them; drain the node after an oops",
        judge=_judge,
        needs=(_COUNTS,),
        wants=(_OPEN, precursors.TOLD, LINES),
        history=(_COUNTS,),
        keep_ns=limits.RECENT_NS,
    ),
)
