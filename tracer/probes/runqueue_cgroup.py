"""How long runnable tasks wait for a CPU, by cgroup, and how often they are preempted.

Long waits with many preemptions are a neighbour's doing; long waits with few are a quota's.

Overhead: about 60 ns per context switch on top of runqueue's, above an empty program.
Caveat: 512 cgroups get a row, for good, in the order in which they first wait; waits of others are counted as folded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.probe import Column, Loss, Map, Member, Probe, Table, Tracepoint
from tracer.probes._holders import CGROUP, fitted
from tracer.probes.runqueue import TASK_CGROUP


def _named(rows: np.ndarray, names: Any) -> np.ndarray:
    """Replace the cgroup's id, which only this node knows, by its path."""
    fields: list[Any] = [("cgroup", CGROUP), ("preempted", "u8"), ("sum", "u8"), ("slots", rows.dtype["slots"])]
    named = np.zeros(len(rows), dtype=fields)
    named["cgroup"] = [fitted(names.cgroup(int(id))) or b"cgroup %d" % id for id in rows["cgroup_id"]]
    for name in ("preempted", "sum", "slots"):
        named[name] = rows[name]
    return named


PROBE = Probe(
    name="runqueue_cgroup",
    summary="how long runnable tasks wait for a CPU, by cgroup, and how often they are preempted",
    tier="deep",
    requires=("cpustate", "runqueue"),
    filters=("pid", "cgroup"),
    hooks=(Tracepoint("sched:sched_switch", ("bool", "struct task_struct *", "struct task_struct *")),),
    members=(Member("task_struct.state", otherwise=("task_struct.__state",)), *TASK_CGROUP),
    enums=(("cgroup_subsys_id", "cpu_cgrp_id"),),
    maps=(
        Map("runqueue_cgroup_rows", "runqueue_cgroup_row", ("RUNQUEUE_CGROUP_ROWS",)),
        Map("runqueue_cgroup_folded", "runqueue_cgroup_folded", ("cpu",)),
    ),
    tables=(
        Table(
            "wait",
            help="time from runnable to running, by the cgroup of the task",
            map="runqueue_cgroup_rows",
            by=("",),
            keys=("cgroup_id",),
            counters=("preempted",),
            histogram="wait",
            used="cgroup_id",
            named=_named,
            columns=(
                Column("cgroup", "", "path of the cgroup that CPU time is charged to"),
                Column("preempted", "times", "switched out while it could have run on"),
                Column("wait", "s", "time from runnable to running"),
            ),
        ),
    ),
    losses=(Loss("folded", "runqueue_cgroup_folded", "waits", "waits of cgroups that got no row"),),
)
