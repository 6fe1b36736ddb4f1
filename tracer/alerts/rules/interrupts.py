"""Softirqs that are not served, network queues that never empty, interrupts that take a CPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.alerts import culprits
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Culprit, Severity, Subject
from tracer.alerts.rule import Rule, View
from tracer.alerts.rules.cpus import is_ksoftirqd, stuck_cpus
from tracer.layouts import constants
from tracer.probe import SOFTIRQS
from tracer.units import SECOND, duration, many, percent, rate

__all__ = ["RULES"]

_OPEN, _WORST = ("cpustall", "open"), ("softirq", "worst")
_POLL, _RUN = ("napi", "poll"), ("hardirq", "run")
_DELAY = constants("softirq")["SOFTIRQ_WORST_DELAY"]
_FIRST_VECTOR = constants("hardirq")["HARDIRQ_FIRST_VECTOR"]


def _unserved(view: View) -> Iterator[Condition]:
    window, stuck = view.windows[_OPEN], stuck_cpus(view)
    found = {
        int(row["cpu"]): _waiting(row, window.end_ns)
        for row in window.rows
        if row["kind"] == b"runnable" and is_ksoftirqd(row)
    }
    for row in view.windows[_WORST].rows if _WORST in view.windows else ():
        if row["kind"] == _DELAY:
            found.setdefault(int(row["cpu"]), _served_late(row))
    for cpu, condition in sorted(found.items()):
        if cpu not in stuck and condition.numbers["delayed_s"] * SECOND >= limits.SOFTIRQ_WARN_NS:
            yield condition


def _waiting(row: np.void, end_ns: int) -> Condition:
    cpu, age_ns = int(row["cpu"]), int(row["age_ns"])
    severity = Severity.PAGE if age_ns >= limits.SOFTIRQ_PAGE_NS else Severity.WARNING
    summary = f"CPU {cpu}: softirqs have been waiting for {duration(age_ns)}: ksoftirqd/{cpu} is ready and does not run"
    return Condition(Subject("cpu", str(cpu)), severity, summary, end_ns - age_ns, {"delayed_s": age_ns / SECOND})


def _served_late(row: np.void) -> Condition:
    cpu, delay_ns = int(row["cpu"]), int(row["duration_ns"])
    vector, holder = int(row["vector"]), culprits.task(row)
    name = SOFTIRQS[vector] if vector < len(SOFTIRQS) else f"vector {vector}"
    summary = f"CPU {cpu}: softirq {name} was served {duration(delay_ns)} late{f', behind {holder}' if holder else ''}"
    return Condition(
        Subject("cpu", str(cpu)),
        Severity.WARNING,
        summary,
        int(row["time_ns"]) - delay_ns,
        {"delayed_s": delay_ns / SECOND},
        Culprit(holder) if holder else None,
    )


def _full_budget(view: View) -> Iterator[Condition]:
    window = view.windows[_POLL]
    rows = window.rows
    never_empty = (
        (rows["budget"] >= limits.NAPI_BUDGET)
        & (rows["polls"] >= limits.NAPI_LEAST_POLLS)
        & (rows["full"] >= limits.NAPI_FULL * rows["polls"])
        & (rows["streak_max"] >= limits.NAPI_FULL * rows["polls"])
    )
    full = rows[never_empty]
    for device in sorted({*full["device"].tolist()}):
        queues = full[full["device"] == device]
        worst = queues[np.argmax(queues["work"])]
        name, share = culprits.text(device), float(worst["full"]) / float(worst["polls"])
        more = f"; {many(len(queues) - 1, 'other queue')} as well" if len(queues) > 1 else ""
        yield Condition(
            Subject("device", name),
            Severity.WARNING,
            f"{name}: CPU {worst['cpu']} polls it at full budget {percent(share)} of the time and never empties it "
            f"({rate(worst['work'] / max(window.seconds, 1e-9))} packets, queue {worst['napi_id']}){more}",
            window.start_ns,
            {"full_share": share, "queues": len(queues)},
        )


def _storm(view: View) -> Iterator[Condition]:
    window = view.windows[_RUN]
    rows = window.rows
    length_ns = max(window.end_ns - window.start_ns, 1)
    spent = (rows["sum"].astype("f8") + rows["none_ns"].astype("f8")) / length_ns
    for cpu in sorted({*rows["cpu"].tolist()}):
        here = rows["cpu"] == cpu
        share = float(spent[here].sum())
        if share < limits.STORM_WARN:
            continue
        top = rows[here][np.argmax(spent[here])]
        runs = float(top["slots"].sum() + top["none_count"]) / (length_ns / SECOND)
        line = culprits.text(top["name"])
        line = f"irq {top['irq']} {line}".rstrip() if 0 <= int(top["irq"]) < _FIRST_VECTOR else line
        yield Condition(
            Subject("cpu", str(cpu)),
            Severity.PAGE if share >= limits.STORM_PAGE else Severity.WARNING,
            f"CPU {cpu} spends {percent(min(share, 1.0))} of its time in hard interrupts, most of it in {line} "
            f"({rate(runs)})",
            window.start_ns,
            {"share": share, "interrupts_per_s": runs},
            Culprit(context=f"hard interrupt {line}", module=culprits.text(top["name"])),
        )


RULES = (
    Rule(
        name="softirq-unserved",
        title="softirqs are not served",
        help=f"""
Packets, timers and completed I/O of a CPU wait: its softirq thread is ready and does not run, or a softirq was served
very late. Usually a real-time task does not let it in.

Severity: warning from {duration(limits.SOFTIRQ_WARN_NS)}, page while one has been waiting for
{duration(limits.SOFTIRQ_PAGE_NS)}, at which drivers' transmit watchdogs speak.
""",
        next="look for real-time tasks on this CPU (ps -eLo cls,rtprio,psr,pid,comm) and move its queues elsewhere",
        judge=_unserved,
        needs=(_OPEN,),
        wants=(_WORST, ("cpustall", "stalls"), ("cpustall", "stall")),
    ),
    Rule(
        name="napi-full-budget",
        title="network queue never empties",
        help=f"""
Every poll of a queue does as much as it may, in one unbroken row: more comes than this CPU can take, or the driver
says "full" for ever. Packets are dropped next; if it never yields, the CPU is stuck.

Severity: warning when {percent(limits.NAPI_FULL)} of a queue's polls, {limits.NAPI_LEAST_POLLS} and more in an
interval, have been full for 5 s. Busy-polling applications (budgets below {limits.NAPI_BUDGET}) do not count.
""",
        next="spread the queue (more queues, RSS, RPS) or find the sender; see rx_missed and rx_dropped of the device",
        judge=_full_budget,
        needs=(_POLL,),
        for_ns=5 * SECOND,
    ),
    Rule(
        name="interrupt-storm",
        title="interrupts take a CPU",
        help=f"""
Hard interrupts take most of a CPU. A line that storms ends in a soft lockup: a device that asks again and again, or
interrupts that nobody handles.

Severity: warning from {percent(limits.STORM_WARN)} of a CPU for 3 s, page from {percent(limits.STORM_PAGE)}.
""",
        next="stop or reset the device behind that line (/proc/interrupts); moving the line only moves the storm",
        judge=_storm,
        needs=(_RUN,),
        for_ns=3 * SECOND,
    ),
)
