"""CPUs that make no progress: stalls, and how long the kernel's own watchdog waits for its thread.

Each CPU samples itself five times a second. It is held up while every sample since its last switch finds it in
kernel mode, and with one of: a softirq or hard interrupt that does not end, another task due that is not let in,
the watchdog unfed, preemption off throughout, or the clock itself late. A task that spins in user mode gives no
such sign, nor does a long system call that lets others run. Where the clock can't go (isolated CPUs) or doesn't
come (interrupts off), ``open`` tells from other CPUs, once per interval, what has not ended.

Overhead: about 0.6 µs per CPU five times a second; 5 ns per context switch, 2 ns per wake-up and 3 ns per interrupt
vector beside the probes that are there already (without runqueue, wake-ups cost a program of their own: 70 ns);
per interval 0.6 ms for 256 CPUs.
Caveat: stalls are seen from about 0.2 s and measured to 0.2 s; shorter ones are not counted.
Caveat: a CPU that comes online later gets its clock as that interval ends. Where it can't (``unclocked``, in CPUs)
only ``open`` watches it.
Caveat: an idle CPU's clock may deliver no samples (6.18): a softirq stuck over the idle task is then told by ``open``
only.
Caveat: a paused guest and interrupts that are off look the same: the clock comes late.
Caveat: on x86, preemption that is off shows only once another task is due; the watchdog sees to that every 4 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.layouts import constants
from tracer.probe import SOFTIRQS, Clock, Column, Events, Loss, Map, Member, Probe, Table, Tracepoint, Vectors

_KNOWN = constants("cpustall")

#: What to call a stall, most telling evidence first; the softirq's vector follows.
_CONTEXTS = (
    (_KNOWN["CPUSTALL_SOFTIRQ"], b"softirq"),
    (_KNOWN["CPUSTALL_HARDIRQ"], b"hard interrupt"),
    (_KNOWN["CPUSTALL_CLOCK_LATE"], b"kernel code, interrupts off"),
    (_KNOWN["CPUSTALL_PREEMPT_OFF"], b"kernel code, preemption off"),
    (_KNOWN["CPUSTALL_FEED"], b"kernel code"),
    (_KNOWN["CPUSTALL_NEED_RESCHED"], b"kernel code"),
)

_STALLS = np.dtype(
    [
        ("time_ns", "u8"),
        ("since_ns", "u8"),
        ("duration_ns", "u8"),
        ("feed_ns", "u8"),
        ("cpu", "u4"),
        ("context", "S32"),
        ("evidence", "u4"),
        ("vector", "u4"),
        ("pid", "u4"),
        ("tgid", "u4"),
        ("comm", "S16"),
        ("cgroup", "S96"),
        ("stack", "u8", (_KNOWN["CPUSTALL_FRAMES"],)),
    ]
)


def _context(evidence: int, vector: int) -> bytes:
    name = next((name for bit, name in _CONTEXTS if evidence & bit), b"")
    if evidence & _KNOWN["CPUSTALL_SOFTIRQ"] and vector < len(SOFTIRQS):
        return name + b" " + SOFTIRQS[vector].encode()
    return name


def _decode(events: np.ndarray, names: Any) -> np.ndarray:
    """Turn ``struct cpustall_stalls`` into rows; of a stall told several times, the latest word counts."""
    latest = {(int(event["event"]["cpu"]), int(event["since_ns"])): event for event in events}
    rows = np.zeros(len(latest), dtype=_STALLS)
    for row, event in zip(rows, latest.values(), strict=True):
        row["time_ns"], row["cpu"] = event["event"]["time_ns"], event["event"]["cpu"]
        for name in ("since_ns", "duration_ns", "feed_ns", "evidence", "vector", "pid", "tgid", "comm"):
            row[name] = event[name]
        row["stack"][: int(event["frames"])] = event["stack"][: int(event["frames"])]
        row["context"] = _context(int(event["evidence"]), int(event["vector"]))
        row["cgroup"] = names.cgroup_of(int(event["pid"])) if event["pid"] else b""
    return rows


PROBE = Probe(
    name="cpustall",
    summary="CPUs that make no progress, and how late the kernel's watchdog is fed",
    tier="light",
    requires=("cpustate",),
    aliases=("softlockup", "lockup"),
    settings={"CPUSTALL_THRESHOLD_NS": 1_000_000_000},
    reader="overdue",
    hooks=(
        # Missing where every CPU is isolated: what is open is judged all the same.
        Clock(5, optional=True),
        Tracepoint("sched:sched_switch", ("bool", "struct task_struct *", "struct task_struct *")),
        Tracepoint("sched:sched_waking", ("struct task_struct *",)),
        Vectors("entry"),
    ),
    members=(
        Member("task_struct.comm"),
        Member("task_struct.flags"),
        # Since bcf9033e5449 ("sched: move CPU field back into thread_info if THREAD_INFO_IN_TASK=y") (in v5.16).
        Member("task_struct.cpu", otherwise=("task_struct.thread_info.cpu",)),
        Member("task_struct.thread_info.flags", optional=True),
        # arm64 alone keeps the preemption count with the task.
        Member("task_struct.thread_info.preempt.count", optional=True),
        Member("task_struct.thread_info.preempt.need_resched", optional=True),
    ),
    maps=(Map("cpustall_rows", "cpustall_row", ("cpu",)), Map("cpustall_told", "cpustall_stalls", ("cpu",))),
    tables=(
        Table(
            "stall",
            help="stalls that have ended",
            map="cpustall_rows",
            by=("cpu",),
            histogram="stall",
            columns=(Column("stall", "s", "time without progress"),),
        ),
        Table(
            "feed",
            help="how long the kernel's watchdog waited for its thread; at about 24 s it reports a soft lockup",
            map="cpustall_rows",
            by=("cpu",),
            histogram="feed",
            columns=(Column("feed", "s", "time from the watchdog's timer to its thread"),),
        ),
        Events(
            "stalls",
            help="stalls past the threshold, told while they last: once per interval, growing",
            layout="cpustall_stalls",
            decode=_decode,
            columns=(
                Column("since_ns", "ns", "when it began: the same in every row of one stall"),
                Column("duration_ns", "ns", "time without progress so far"),
                Column("feed_ns", "ns", "of which the kernel's watchdog has been waiting"),
                Column("context", "", "what holds the CPU"),
                Column(
                    "evidence", "bits", "1 softirq, 2 hard interrupt, 4 others due, 8 unfed, 16 no preemption, 32 late"
                ),
                Column("vector", "", "of the softirq"),
                Column("pid", "", "thread on the CPU"),
                Column("stack", "", "kernel addresses, innermost first, 0 after the last"),
            ),
        ),
        Table(
            "open",
            help="what has not ended at the end of the interval, as seen from another CPU",
            keys=("cpu", "kind"),
            gauges=("age_ns", "fed_ns", "idle_ns"),
            columns=(
                Column(
                    "kind", "", "stall, softirq, hardirq, heartbeat (no interrupt was taken) or runnable (a task waits)"
                ),
                Column("age_ns", "ns", "for how long"),
                Column("pid", "", "thread on the CPU; of a runnable, the one that waits"),
                Column("vector", "", "of the softirq"),
                Column("fed_ns", "ns", "when the kernel's watchdog was last fed there; 0: not yet"),
                Column("idle_ns", "ns", "until when the CPU was last idle for 10 ms and more; 0: not yet"),
            ),
        ),
    ),
    losses=(
        Loss("negative", "cpustall_rows", "negative", "watchdog delays below zero, not counted"),
        Loss("unreadable", "cpustall_rows", "unreadable", "samples that could not tell whether another task was due"),
    ),
)
