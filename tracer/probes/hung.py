"""Tasks in uninterruptible sleep, and for how long: what the kernel's hung task detector waits for.

``counted`` says whether that detector counts such a sleep: killable ones (most of NFS and FUSE, vfork) it skips, and
idle workers are not even listed. Tasks that were asleep before the trace began are found in /proc during the first
intervals; their sleep began earlier than told.

Overhead: about 2 ns per context switch and 3 ns per wake-up, 15 ns more if the sleep is uninterruptible; per interval
50 µs for each task that is listed.
Caveat: only in the host's pid namespace: elsewhere nothing is listed (``foreign``).
Caveat: stacks need CAP_SYS_ADMIN and CAP_SYS_PTRACE, which a helper keeps; without them the innermost function (wchan)
or nothing. Where the helper does not answer, ``stackless`` counts it.
"""

from __future__ import annotations

from tracer.probe import Column, Loss, Map, Member, Probe, Table, Tracepoint

PROBE = Probe(
    name="hung",
    summary="tasks in uninterruptible sleep, for how long and where",
    tier="light",
    requires=("cpustate",),
    aliases=("hungtask", "dstate"),
    reader="hung",
    settings={"HUNG_LISTED_NS": 10_000_000_000},
    hooks=(
        Tracepoint("sched:sched_switch", ("bool", "struct task_struct *", "struct task_struct *"), everywhere=True),
        Tracepoint("sched:sched_waking", ("struct task_struct *",), everywhere=True, timed=False),
    ),
    members=(
        Member("task_struct.pid"),
        Member("task_struct.state", otherwise=("task_struct.__state",)),
    ),
    maps=(Map("hung_rows", "hung_row", ("cpu",)), Map("hung_sets", "hung_set", ("HUNG_SETS",))),
    tables=(
        Table(
            "blocks",
            help="uninterruptible sleeps, by the CPU where they began",
            map="hung_rows",
            by=("cpu",),
            counters=("blocks",),
            columns=(Column("blocks", "sleeps", "how many began"),),
        ),
        Table(
            "blocked",
            help="tasks whose sleep goes on for longer than HUNG_LISTED_NS or a quarter of the kernel's timeout",
            keys=("pid",),
            columns=(
                Column("pid", "", "thread"),
                Column("tgid", "", "its process"),
                Column("since_ns", "ns", "when the sleep began, at the latest"),
                Column("age_ns", "ns", "for how long it has slept, at least"),
                Column("counted", "", "whether the kernel's detector counts it: yes, no (killable) or unknown"),
                Column("stack", "", "functions from the innermost, ; between them"),
            ),
        ),
        Table(
            "detector",
            help="the kernel's own detector",
            columns=(
                Column("scanned_ns", "ns", "when it last looked through all tasks, as seen from here; 0 not known yet"),
                Column("detected", "tasks", "found hung since boot; 0 where the kernel doesn't say"),
            ),
        ),
    ),
    losses=(Loss("collided", "hung_rows", "collided", "sleeps not noted: all places for that pid were taken"),),
)
