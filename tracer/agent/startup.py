"""What the agent says of itself when it starts: a few aligned lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracer import units
from tracer.agent.crew import Post
from tracer.alerts import deadlines
from tracer.alerts.rule import View
from tracer.kernel.realtime import PRIORITY, throttled_percent
from tracer.reports.layout import wrap

__all__ = ["aligned", "detector_lines", "sentinel_lines"]

_ALONE = (
    "one usable CPU: while it is stuck nothing runs here, and no sentinel can speak. Then only the receiver of the "
    "stream notices, by the silence (--stream), and the black box holds what came before."
)


def aligned(facts: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Return lines of ``width`` cells with their labels in a column; a label that repeats is shown once."""
    found = list(facts)
    column = max((len(label) for label, _ in found), default=0) + 2
    lines, before = [], ""
    for label, text in found:
        lines += wrap(text, width, f"{'' if label == before else label:<{column}}", " " * column)
        before = label
    return lines


def sentinel_lines(posts: Sequence[Post]) -> list[str]:
    """Return a line per sentinel, with what it has to do without, and what their number means."""
    lines = [_sentinel(post) for post in posts]
    percent = throttled_percent()
    if any(post.ready and not post.lacks for post in posts) and percent < 100:
        lines.append(
            f"real-time work may use {percent} % of a CPU (kernel.sched_rt_runtime_us); sentinels use far less"
        )
    return lines + [_ALONE] if len(posts) < 2 else lines


def _sentinel(post: Post) -> str:
    if not post.ready:
        return f"{post.number} on CPU {post.cpu}: has not said that it is ready"
    lacks = " ".join(post.lacks)
    priority = "ordinary priority" if "SCHED_FIFO" in lacks else f"SCHED_FIFO {PRIORITY}"
    locked = "memory not locked" if "mlockall" in lacks else "memory locked"
    degraded = f"; degraded, alerts all the same: {'; '.join(post.lacks)}" if post.lacks else ""
    return f"{post.number} on CPU {post.cpu}: {priority}, {locked}{degraded}"


def detector_lines(view: View) -> list[str]:
    """Return what the kernel's detectors would do: who panics, who only logs, who is off."""
    budgets = [
        deadlines.soft_lockup(view),
        deadlines.hard_lockup(view),
        deadlines.hung_task(view),
        deadlines.rcu_stall(view),
        deadlines.workqueue(view),
    ]
    panic = [f"{budget.detector} after {_time(budget.panics_ns)}" for budget in budgets if budget.panics_ns is not None]
    log = [
        f"{budget.detector} after {_time(budget.logs_ns)}"
        for budget in budgets
        if budget.panics_ns is None and budget.logs_ns is not None
    ]
    off = [f"{budget.detector} ({budget.why})" for budget in budgets if budget.logs_ns is None]
    (log, panic)[view.number("vm.panic_on_oom", 0) > 0].append("out of memory")
    said = (("would panic", panic), ("would only log", log), ("off", off))
    return [f"{what}: {', '.join(which)}" for what, which in said if which]


def _time(ns: int | None) -> str:
    return f"≤ {units.duration(ns or 0)}"
