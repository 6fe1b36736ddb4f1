"""How long RCU's grace periods take: a CPU that does not let one end stalls everything that frees memory.

A thread waits for a grace period every 5 s, by membarrier(2). While it waits for long, none ends.

Overhead: nothing runs in the kernel but a grace period every 5 s; 10 µs per interval.
Caveat: a wait lasts for up to two grace periods, the one that is going on and the next.
Caveat: nothing is waited for while kernel.hung_task_panic is set: the wait itself would be the hung task.
Caveat: not where CPUs are nohz_full or only one is online: there membarrier(2) does not wait.
"""

from __future__ import annotations

from tracer.probe import Column, Probe, Table

PROBE = Probe(
    name="rcu",
    summary="how long RCU's grace periods take, and whether one goes on and on",
    tier="light",
    source="rcu",
    tables=(
        Table(
            "grace",
            help="waits for a grace period",
            gauges=("age_ns",),
            histogram="wait",
            columns=(
                Column("state", "", "waiting, idle until the next wait, or hung_task_panic: not allowed to wait"),
                Column("begun_ns", "ns", "when the wait that goes on began; 0 if none does"),
                Column("age_ns", "ns", "for how long it has gone on"),
                Column("wait", "s", "time until the grace period had ended"),
            ),
        ),
    ),
)
