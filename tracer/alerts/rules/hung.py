"""Tasks that sleep uninterruptibly and do not wake up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tracer.alerts import culprits, deadlines, precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Countdown, Culprit, Severity, Subject
from tracer.alerts.logpatterns import LINES, found
from tracer.alerts.rule import Rule, View
from tracer.units import SECOND, duration, many

__all__ = ["RULES"]

_BLOCKED, _DETECTOR = ("hung", "blocked"), ("hung", "detector")
_REPORTED = Subject("node", "hung tasks")

# How a task waits, not for what.
_WAITING = (
    "__schedule",
    "schedule",
    "io_schedule",
    "preempt_schedule",
    "rwsem_down_",
    "down_",
    "__down",
    "__mutex_lock",
    "mutex_lock",
    "percpu_rwsem_wait",
    "__percpu_down_read",
    "wait_for_completion",
    "__wait_for_common",
    "__wait_on_",
    "bit_wait",
    "out_of_line_wait_on",
    "folio_wait_bit",
)


def _hung(view: View) -> Iterator[Condition]:
    rows = view.rows(*_BLOCKED)
    counted = rows[rows["counted"] != b"no"]
    # Those beyond the reader's limit are younger than those listed; each of them may count.
    untold = view.windows[_BLOCKED].losses.get("untold", 0)
    first = deadlines.hung_task(view)
    due = counted[counted["age_ns"] >= first.quarter_ns(limits.HUNG_WARN_NS)]
    if not len(due):
        return
    blocked = len(due) + untold
    budget = deadlines.hung_task(view, blocked)
    oldest = due[0]
    since_ns = int(oldest["since_ns"])
    countdown = budget.countdown(since_ns)
    unsure = "; it slept before foreshock came, perhaps killably" if oldest["counted"] == b"unknown" else ""
    yield Condition(
        Subject("node", "blocked tasks"),
        Severity.PAGE if budget.panics_ns is not None else Severity.WARNING,
        f"{_told(blocked, oldest)}{unsure}{budget.remark}",
        since_ns,
        {"tasks": blocked, "blocked_s": int(oldest["age_ns"]) / SECOND},
        _culprit(oldest),
        _by_scans(view, countdown, since_ns) if countdown else None,
    )


def _by_scans(view: View, countdown: Countdown, since_ns: int) -> Countdown:
    """Return the countdown with the detector's own scans where one has been seen: it acts at one of the next.

    A scan is known by the interval it came in. Source: check_hung_uninterruptible_tasks() in kernel/hung_task.c: one
    scan notes the task, a later one at least a timeout after it reports it.
    """
    window = view.windows.get(_DETECTOR)
    scanned_ns = int(window.rows["scanned_ns"][0]) if window is not None and len(window.rows) else 0
    if window is None or not scanned_ns:
        return countdown
    timeout = view.number("kernel.hung_task_timeout_secs", 120)
    every = view.number("kernel.hung_task_check_interval_secs", 0) or timeout
    every_ns = min(every, timeout) * SECOND
    earliest_ns = scanned_ns - (window.end_ns - window.start_ns)
    noted_ns = scanned_ns + math.ceil((since_ns - earliest_ns) / every_ns) * every_ns
    acts_ns = noted_ns + math.ceil(timeout * SECOND / every_ns) * every_ns
    return replace(countdown, latest_ns=min(countdown.latest_ns, acts_ns))


def _killable(view: View) -> Iterator[Condition]:
    rows = view.rows(*_BLOCKED)
    due = rows[(rows["counted"] == b"no") & (rows["age_ns"] >= limits.BLOCKED_WARN_NS)]
    if len(due):
        yield Condition(
            Subject("node", "killable sleeps"),
            Severity.WARNING,
            f"{_told(len(due), due[0])}; killable sleeps do not trigger the hung task detector",
            int(due[0]["since_ns"]),
            {"tasks": len(due), "blocked_s": int(due[0]["age_ns"]) / SECOND},
            _culprit(due[0]),
        )


def _told(blocked: int, oldest: np.void) -> str:
    where = next((frame for frame in _frames(oldest) if not frame.startswith(_WAITING)), "")
    others = f"{many(blocked, 'task')} blocked for up to" if blocked > 1 else "a task has been blocked for"
    first = "first " if blocked > 1 else ""
    return (
        f"{others} {duration(int(oldest['age_ns']))}: {first}{culprits.task(oldest)}{f' in {where}' if where else ''}"
    )


def _culprit(row: np.void) -> Culprit:
    frames = [frame.partition(" ") for frame in _frames(row)]
    module = next((module.strip("[]") for _, _, module in frames if module), "")
    return Culprit(culprits.task(row), "uninterruptible sleep", tuple(function for function, _, _ in frames), module)


def _frames(row: np.void) -> list[str]:
    return [frame for frame in culprits.text(row["stack"]).split(";") if frame]


def _reported(view: View) -> Iterator[Condition]:
    rows = precursors.told(view, "hung_task")
    lines = found(view, "hung-task-report")
    if not len(rows) and not lines:
        return
    since_ns = min([*(int(row["time_ns"]) for row in rows), *(line.time_ns for line in lines)])
    # The panic comes at the end of the scan that found enough of them: milliseconds later.
    needed = view.number("kernel.hung_task_panic", 0)
    panics = 0 < needed <= max(len(rows), len(lines))
    budget = deadlines.hung_task(view, needed)
    task = culprits.task(rows[0]) if len(rows) else ""
    says = lines[0].says if lines else f"{task} is hung, the kernel says"
    yield Condition(
        _REPORTED,
        Severity.PAGE if panics else Severity.WARNING,
        says,
        since_ns,
        {"tasks": max(len(rows), len(lines))},
        Culprit(task, "uninterruptible sleep") if task else None,
        Countdown(budget.detector, since_ns, True, budget.setting) if panics else None,
    )


RULES = (
    Rule(
        name="hung-task",
        title="tasks are blocked",
        help=f"""
Tasks have been in uninterruptible sleep (state D) for long: they wait for a drive, a file server, a lock or a driver
that does not answer. The sleeps are the ones that the kernel's hung task detector counts.

Severity: warning from {duration(limits.HUNG_WARN_NS)}, or a quarter of the kernel's own budget where that is shorter;
page if it ends in a panic (`kernel.hung_task_panic`; N > 1: with so many tasks).

Countdown: the detector looks every `kernel.hung_task_timeout_secs` (120 s) or
`kernel.hung_task_check_interval_secs`, notes a task at one look and reports it a timeout later: up to 240 s. Once one
of its looks has been seen, its time is known to an interval.
""",
        next="look what the first one waits for (its stack): drive, file server or driver; save state elsewhere",
        judge=_hung,
        needs=(_BLOCKED,),
        wants=(_DETECTOR,),
    ),
    Rule(
        name="blocked-task",
        title="tasks are blocked, killably",
        help=f"""
Tasks have been in uninterruptible sleep that a fatal signal ends, as it is usual for NFS, FUSE and Lustre: the kernel's
hung task detector skips them, and nothing panics.

Severity: warning from {duration(limits.BLOCKED_WARN_NS)}.

Countdown: none.
""",
        next="look at the file server or the FUSE process that does not answer",
        judge=_killable,
        needs=(_BLOCKED,),
    ),
    Rule(
        name="hung-task-report",
        title="the kernel reports hung tasks",
        help="""
The kernel's own detector has found hung tasks. With `kernel.hung_task_panic` it panics at the end of the same look.

Severity: warning; page if it panics.

Countdown: none is left then.
""",
        next="look what they wait for (dmesg has their stacks)",
        judge=_reported,
        needs=(),
        wants=(precursors.TOLD, LINES),
        fast=True,
        keep_ns=limits.RECENT_NS,
    ),
)
