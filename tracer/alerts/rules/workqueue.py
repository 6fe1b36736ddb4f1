"""Kernel work that is not begun, and work that does not end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.alerts import culprits, deadlines
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Culprit, Severity, Subject
from tracer.alerts.rule import Rule, View
from tracer.units import SECOND, duration

__all__ = ["RULES"]

_OPEN = ("workqueue", "open")


def _stuck(view: View) -> Iterator[Condition]:
    rows = view.rows(*_OPEN)
    pools, works = rows[rows["kind"] == b"pool"], rows[rows["kind"] == b"work"]
    budget = deadlines.workqueue(view)
    told: set[Subject] = set()
    # Oldest first: a CPU has a pool for each priority, and one alert.
    for pool in pools[pools["age_ns"] >= budget.quarter_ns(limits.POOL_WARN_NS)]:
        cpu, age_ns = int(pool["cpu"]), int(pool["age_ns"])
        subject = Subject("cpu", str(cpu)) if cpu >= 0 else Subject("node", f"unbound pool {pool['pool']}")
        if subject in told:
            continue
        told.add(subject)
        page = budget.panics_ns is not None or (budget.logs_ns is not None and age_ns >= budget.logs_ns // 4)
        whose = f"CPU {cpu}" if cpu >= 0 else f"no CPU (unbound pool {pool['pool']})"
        waits = view.symbol(int(pool["function"]))[0]
        at_work = works[works["cpu"] == cpu] if cpu >= 0 else works[:0]
        yield Condition(
            subject,
            Severity.PAGE if page else Severity.WARNING,
            f"the kernel's workers of {whose} have begun nothing for {duration(age_ns)}; {waits} waits{budget.remark}",
            int(pool["since_ns"]),
            {"stuck_s": age_ns / SECOND},
            _at_work(at_work[0], view) if len(at_work) else None,
            budget.countdown(int(pool["since_ns"])),
        )


def _long(view: View) -> Iterator[Condition]:
    rows = view.rows(*_OPEN)
    told: set[Subject] = set()
    for row in rows[(rows["kind"] == b"work") & (rows["age_ns"] >= limits.LONG_WORK_INFO_NS)]:
        age_ns, function = int(row["age_ns"]), view.symbol(int(row["function"]))[0]
        subject = Subject("node", f"work {function}")
        if subject not in told:
            told.add(subject)
            yield Condition(
                subject,
                Severity.WARNING if age_ns >= limits.LONG_WORK_WARN_NS else Severity.INFO,
                f"the kernel work {function} has been running for {duration(age_ns)}",
                int(row["since_ns"]),
                {"running_s": age_ns / SECOND},
                _at_work(row, view),
            )


def _at_work(row: np.void, view: View) -> Culprit:
    symbol, module = view.symbol(int(row["function"]))
    frames = [frame.partition(" ")[0] for frame in culprits.text(row["stack"]).split(";") if frame]
    return Culprit(culprits.task(row), f"work {symbol}", tuple(frames), module)


RULES = (
    Rule(
        name="workqueue-stall",
        title="kernel work is not begun",
        help=f"""
Work is queued for a pool of kernel workers and none of it is begun: its CPU is held up, or every worker is stuck. It
is what the kernel's workqueue watchdog looks at.

Severity: warning from {duration(limits.POOL_WARN_NS)}, or a quarter of the kernel's own budget where that is shorter;
page from a quarter of it, or if it ends in a panic (`workqueue.panic_on_stall`).

Countdown: the watchdog looks every `workqueue.watchdog_thresh` (30 s) for pools that have begun nothing for as long:
up to 60 s. Many kernels do not have it (CONFIG_WQ_WATCHDOG).
""",
        next="look what holds this CPU (alert soft-lockup) or what its workers wait for (alert hung-task)",
        judge=_stuck,
        needs=(_OPEN,),
    ),
    Rule(
        name="long-work",
        title="kernel work does not end",
        help=f"""
A kernel worker has been busy with one work for long. Some works are long by nature (writing back to a slow drive);
others wait for a device that does not answer.

Severity: info from {duration(limits.LONG_WORK_INFO_NS)}, warning from {duration(limits.LONG_WORK_WARN_NS)}.

Countdown: none, the kernel does not mind.
""",
        next="look at its stack for the drive or the driver that it waits for",
        judge=_long,
        needs=(_OPEN,),
    ),
)
