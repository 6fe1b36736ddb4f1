"""Kernel work: how late it starts, how long it runs, and worker pools in which nothing is begun.

A pool is looked at five times a second as the kernel's own workqueue watchdog does it: works wait, and none has been
begun since. A work's run includes its sleeps. Functions are told by address.

Overhead: about 80 ns when a work is queued, 100 ns when it starts and 85 ns when it ends, above an empty program: 0.3 %
of a CPU for 10,000 works a second, and most nodes have a tenth of that. So it may run always. Pools cost 1 µs per CPU
five times a second. 0.4 MB of kernel memory.
Caveat: a delay includes the time a work waits for its turn in a queue that runs one or few at a time (max_active).
Caveat: a pool is known once work has been queued to it; a long run that began before the trace isn't seen.
Caveat: a worker's stack is asked of the helper that keeps privileges: ``stackless`` counts missing answers.
Caveat: the pools of a CPU without our clock (isolated, nohz_full) are watched by the next CPU alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.probe import Clock, Column, Events, Loss, Map, Member, Probe, Table, Tracepoint

_WORST = np.dtype(
    [
        ("time_ns", "u8"),
        ("kind", "u4"),
        ("duration_ns", "u8"),
        ("function", "u8"),
        ("cpu", "u4"),
        ("pid", "u4"),
        ("comm", "S16"),
    ]
)


def _decode(events: np.ndarray, names: Any) -> np.ndarray:
    """Turn ``struct workqueue_worst`` into rows."""
    rows = np.zeros(len(events), dtype=_WORST)
    rows["time_ns"], rows["cpu"] = events["event"]["time_ns"], events["event"]["cpu"]
    for name in ("kind", "duration_ns", "function", "pid", "comm"):
        rows[name] = events[name]
    return rows


PROBE = Probe(
    name="workqueue",
    summary="kernel work: how late it starts, how long it runs, pools that are stuck",
    tier="light",
    requires=("cpustate",),
    aliases=("wqlat",),
    reader="workqueue",
    settings={"WORKQUEUE_THRESHOLD_NS": 1_000_000_000, "WORKQUEUE_LISTED_NS": 10_000_000_000},
    hooks=(
        # The requested CPU, unsigned in older kernels (v5.10), the pool_workqueue, the work: so since v3.9.
        Tracepoint("workqueue:workqueue_queue_work", everywhere=True),
        Tracepoint("workqueue:workqueue_execute_start", ("struct work_struct *",), everywhere=True),
        Tracepoint("workqueue:workqueue_execute_end", ("struct work_struct *",), everywhere=True),
        # Missing where every CPU is isolated: then no pool is judged.
        Clock(5, optional=True),
    ),
    members=(
        Member("work_struct.func"),
        Member("work_struct.entry"),
        Member("pool_workqueue.pool"),
        Member("worker_pool.cpu"),
        Member("worker_pool.id"),
        Member("worker_pool.worklist"),
        # Since 82607adcf9cd ("workqueue: implement lockup detector") (in v4.5); by its other name in v7.2.
        Member("worker_pool.watchdog_ts", otherwise=("worker_pool.last_progress_ts",)),
    ),
    maps=(
        Map("workqueue_rows", "workqueue_row", ("cpu",)),
        Map("workqueue_places", "workqueue_queued", ("WORKQUEUE_PLACES",)),
        Map("workqueue_workers", "workqueue_running", ("WORKQUEUE_WORKERS",)),
        Map("workqueue_softirqs", "workqueue_running", ("cpu",)),
        Map("workqueue_pools", "workqueue_pool", ("cpu", "WORKQUEUE_POOLS")),
    ),
    tables=(
        Table(
            "delay",
            help="time from the queueing of a work to its start, by the CPU it starts on",
            map="workqueue_rows",
            by=("cpu",),
            histogram="delay",
            columns=(Column("delay", "s", "time from queued to started"),),
        ),
        Table(
            "run",
            help="time from a work's start to its end, sleeps included, by the CPU it ends on",
            map="workqueue_rows",
            by=("cpu",),
            histogram="run",
            columns=(Column("run", "s", "time from start to end"),),
        ),
        Events(
            "worst",
            help="works that began late or ran long",
            layout="workqueue_worst",
            rank="duration_ns",
            decode=_decode,
            columns=(
                Column("kind", "", "1 delay, 2 run"),
                Column("duration_ns", "ns", "length of the delay or the run"),
                Column("function", "", "address of the work's function"),
                Column("pid", "", "the worker's"),
            ),
        ),
        Table(
            "open",
            help="what has not ended at the end of the interval",
            keys=("kind", "cpu", "pool", "pid"),
            gauges=("age_ns",),
            columns=(
                Column(
                    "kind", "", "pool: works wait and none is begun; work: one runs on, or runs where a pool is stuck"
                ),
                Column("cpu", "", "of the pool, or where the work began; -1 for a pool of no CPU"),
                Column("pool", "", "number of the pool; -1 for a work"),
                Column("since_ns", "ns", "since when"),
                Column("age_ns", "ns", "for how long"),
                Column("function", "", "address of the function: of the work that waits longest, or runs"),
                Column("pid", "", "the worker's; 0 where it runs in a softirq"),
                Column("stack", "", "the worker's functions from the innermost, ; between them"),
            ),
        ),
    ),
    losses=(
        Loss(
            "unqueued",
            "workqueue_rows",
            "unqueued",
            "works that were never queued and so have no delay: barriers of flushes",
            harmless=True,
        ),
        Loss("unmatched", "workqueue_rows", "unmatched", "works whose start was not seen: no run counted"),
        Loss("collided", "workqueue_rows", "collided", "works or pools without a place: not watched"),
        Loss("negative", "workqueue_rows", "negative", "times below zero, not counted"),
        Loss("suppressed", "workqueue_rows", "delay_limit.suppressed", "late works not told one by one", harmless=True),
        Loss("suppressed", "workqueue_rows", "run_limit.suppressed", "long works not told one by one", harmless=True),
    ),
)
