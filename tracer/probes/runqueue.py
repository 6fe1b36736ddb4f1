"""How long runnable tasks wait for a CPU, and who held it during the longest waits.

A wait begins with the wake-up (sched_waking, on the CPU of the waker), the birth or the preemption of a task and
ends when the task is switched in; it is charged to the CPU the task first runs on. The idle task never waits.

Overhead: about 40 ns per context switch and 40 ns per wake-up, above an empty program.
Caveat: a task that was waiting when the trace began is counted as unmatched, not as a wait.
Caveat: waits of cgroups at their CPU quota count as waits; the holder's cgroup tells them apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.probe import Column, Events, Loss, Map, Member, Probe, Table, Tracepoint
from tracer.probes._holders import CGROUP, HOLDER_PRIO, fitted, holders

_WORST = np.dtype(
    [
        ("time_ns", "u8"),
        ("wait_ns", "u8"),
        ("cpu", "u4"),
        ("waited_cpu", "u4"),
        ("pid", "u4"),
        ("tgid", "u4"),
        ("comm", "S16"),
        ("cgroup", CGROUP),
        ("holder_pid", "u4"),
        ("holder_tgid", "u4"),
        ("holder_comm", "S16"),
        ("holder_cgroup", CGROUP),
        ("holder_prio", "i4"),
        ("holder_ns", "u8"),
        ("holders", "u4"),
        ("task_ns", "u8"),
        ("idle_ns", "u8"),
        ("softirq_ns", "u8"),
        ("hardirq_ns", "u8"),
        ("covered_ns", "u8"),
    ]
)


def _decode(events: np.ndarray, names: Any) -> np.ndarray:
    """Turn ``struct runqueue_worst`` into rows: the waiting task, and what its CPU did meanwhile."""
    rows = np.zeros(len(events), dtype=_WORST)
    for row, event in zip(rows, events, strict=True):
        end_ns = int(event["waited_until_ns"])
        start_ns = int(event["event"]["time_ns"]) - int(event["wait_ns"])
        found = holders(event["cpu"], start_ns, end_ns, skip_pid=int(event["pid"]))
        row["time_ns"], row["cpu"] = event["event"]["time_ns"], event["event"]["cpu"]
        for name in ("wait_ns", "waited_cpu", "pid", "tgid", "comm"):
            row[name] = event[name]
        row["cgroup"] = fitted(names.cgroup(int(event["cgroup_id"])))
        row["holder_pid"], row["holder_tgid"], row["holder_comm"] = found.pid, found.tgid, found.comm
        row["holder_prio"] = found.prio
        row["holder_cgroup"] = fitted(names.cgroup_of(found.pid)) if found.pid else b""
        row["holder_ns"], row["holders"] = found.holder_ns, found.tasks
        for name in ("task_ns", "idle_ns", "softirq_ns", "hardirq_ns", "covered_ns"):
            row[name] = getattr(found, name)
    return rows


#: What bpf/task.bpf.h reads.
TASK_CGROUP = (
    Member("task_struct.cgroups"),
    Member("css_set.subsys"),
    Member("css_set.dfl_cgrp"),
    Member("cgroup_subsys_state.cgroup"),
    Member("cgroup.kn"),
    Member("kernfs_node.id"),
)

PROBE = Probe(
    name="runqueue",
    summary="how long runnable tasks wait for a CPU, and who held it during the longest waits",
    tier="light",
    requires=("cpustate",),
    filters=("pid", "cgroup"),
    aliases=("runqlat", "runqslower"),
    settings={"RUNQUEUE_THRESHOLD_NS": 5_000_000},
    hooks=(
        Tracepoint("sched:sched_switch", ("bool", "struct task_struct *", "struct task_struct *"), everywhere=True),
        Tracepoint("sched:sched_waking", ("struct task_struct *",), everywhere=True),
        Tracepoint("sched:sched_wakeup_new", ("struct task_struct *",), everywhere=True),
        Tracepoint("sched:sched_migrate_task", ("struct task_struct *", "int"), everywhere=True, timed=False),
    ),
    members=(
        Member("task_struct.state", otherwise=("task_struct.__state",)),
        Member("task_struct.on_rq"),
        Member("task_struct.pi_lock"),
        # Since 152e11f6df29 ("sched/fair: Implement delayed dequeue") (in v6.12).
        Member("task_struct.se.sched_delayed", optional=True),
        # Since bcf9033e5449 ("sched: move CPU field back into thread_info if THREAD_INFO_IN_TASK=y") (in v5.16).
        Member("task_struct.cpu", otherwise=("task_struct.thread_info.cpu",)),
        *TASK_CGROUP,
    ),
    enums=(("cgroup_subsys_id", "cpu_cgrp_id"),),
    maps=(
        Map("runqueue_rows", "runqueue_row", ("cpu",)),
        Map("runqueue_sets", "runqueue_set", ("RUNQUEUE_SETS",)),
        Map("runqueue_moves", "runqueue_move", ("RUNQUEUE_MOVES",)),
    ),
    tables=(
        Table(
            "wait",
            help="time from runnable to running, by the CPU that ran the task",
            map="runqueue_rows",
            by=("cpu",),
            histogram="wait",
            columns=(Column("wait", "s", "time from runnable to running"),),
        ),
        Events(
            "worst",
            help="the longest waits, with what held the CPU meanwhile",
            layout="runqueue_worst",
            rank="wait_ns",
            decode=_decode,
            columns=(
                Column("wait_ns", "ns", "length of the wait"),
                Column("cpu", "", "CPU the task ran on in the end"),
                Column("waited_cpu", "", "CPU it was queued on"),
                HOLDER_PRIO,
                Column("holder_ns", "ns", "of the wait, time the holder itself ran"),
                Column("holders", "tasks", "distinct tasks that ran meanwhile"),
                Column("covered_ns", "ns", "part of the wait that the CPU's log reaches back to"),
            ),
        ),
    ),
    losses=(
        Loss("unmatched", "runqueue_rows", "unmatched", "tasks that ran without a wait having been noted"),
        Loss("collided", "runqueue_rows", "collided", "waits not noted: all places for that pid were taken"),
        Loss("negative", "runqueue_rows", "negative", "waits below zero, not counted"),
        Loss("suppressed", "runqueue_rows", "limit.suppressed", "long waits not told one by one", harmless=True),
    ),
)
