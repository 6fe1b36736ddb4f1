"""Who is killed for lack of memory, and memory that the kernel does not find when it needs it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.alerts import culprits, kills, precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Culprit, Severity, Subject
from tracer.alerts.logpatterns import LINES, Found, conditions, found
from tracer.alerts.rule import Rule, View
from tracer.units import many

__all__ = ["RULES"]


def _victim(view: View) -> Iterator[Condition]:
    """One kill is a tracepoint and a block of lines: all of them are one alert."""
    rows, lines = precursors.told(view, "oom_kill"), kills.lines(view)
    if not len(rows) and not lines:
        return
    # Of the block of one kill, the line with the victim says why.
    worst = max(lines, key=lambda line: (line.severity, "pid" in line.groups), default=None)
    victims = {int(row["pid"]): _told(row) for row in rows}
    for line in lines:
        if line.groups.get("pid"):
            victims.setdefault(int(line.groups["pid"]), f"{line.groups['task']}[{line.groups['pid']}]")
    first = next(iter(victims.values()), "")
    others = f" and {many(len(victims) - 1, 'other')}" if len(victims) > 1 else ""
    yield Condition(
        Subject("memory", "oom"),
        max(kills.severity(view)[0], worst.severity if worst else Severity.INFO),
        f"{first}{others} killed for lack of memory{_why(worst)}" if first else worst.says if worst else "",
        # By the tracepoint where there is one: that is all a sentinel sees.
        min([int(row["time_ns"]) for row in rows] or [line.time_ns for line in lines]),
        {"kills": len(victims)},
        Culprit(first) if first else None,
    )


def _told(row: np.void) -> str:
    cgroup = culprits.text(row["cgroup"])
    return f"{culprits.task(row)}{f' of {cgroup}' if cgroup else ''}"


def _why(worst: Found | None) -> str:
    return f": {worst.says.partition(': ')[2]}" if worst and ": " in worst.says else ""


def _allocation(view: View) -> Iterator[Condition]:
    return conditions(found(view, "allocation-failure"))


RULES = (
    Rule(
        name="oom-victim",
        title="a task is killed for lack of memory",
        help=f"""
The OOM killer has chosen a task; the alert names it and its cgroup. The kernel log's block of lines about it belongs to
the same alert. (The alert oom-kill counts those that nothing names.)

Severity: info where a cgroup has reached its own limit, warning where the node is out of memory, page from
{limits.OOM_KILLS_PAGE} such kills in a minute, and when nothing is left to kill.

Countdown: none; with `vm.panic_on_oom` the node panics instead.
""",
        next="restart what was killed; give its cgroup more memory, or find what grew (alert memory-exhaustion)",
        judge=_victim,
        needs=(),
        wants=(precursors.TOLD, LINES, kills.EFFORT, kills.INFO),
        history=(precursors.TOLD, LINES, kills.EFFORT),
        fast=True,
        keep_ns=limits.RECENT_NS,
    ),
    Rule(
        name="allocation-failure",
        title="the kernel found no memory when it needed it",
        help="""
An allocation in the kernel failed, mostly of several contiguous pages in an interrupt: a packet or a request was
dropped.

Severity: warning.

Countdown: none.
""",
        next="raise vm.min_free_kbytes; look for what fragments memory (alert reclaim-storm)",
        judge=_allocation,
        needs=(LINES,),
        keep_ns=limits.RECENT_NS,
    ),
)
