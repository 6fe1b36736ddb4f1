"""Where tasks block and for how long: off-CPU time by task and stack, from the switch away until it runs again.

The stack is taken when the task blocks, before anyone knows for how long. A task that blocked four times in a row for
less than OFFCPU_MINIMUM_NS has its stack taken at one block in OFFCPU_SAMPLE (a power of two) only; a longer block
without a stack keeps its time, with stack 0, counted as ``not_taken``. Shorter blocks are only counted, in ``short``.

Who wakes a task is noted by its name, or as the softirq or interrupt in which it happened.

Overhead: about 150 ns per switch of tasks that block shortly, 200 ns per wake-up, 800 ns per block with its stack and
more if that is deep; 29 MB of kernel memory. A read takes 2 ms of the agent's CPU, the first ones 100 ms for symbols.
Caveat: a block belongs to the interval in which it ends, with all of its time. One that goes on when the recording ends
belongs to the last interval, marked as such; reports and exports of stacks give each range its part. Where it began
before the recording, the time since its start counts, and what the task waits in is /proc's: the kernel's functions in
D, else one of them; nothing of its program's.
Caveat: the time includes the wait for a CPU after the wake-up; the runqueue probe tells how long that is.
Caveat: a program's stack is followed by frame pointers. A function without one hides the function that called it: glibc
on most distributions hides who called it. A program without any shows its innermost function alone.
Caveat: of a process that has ended by the interval's end, or is another program (``exec``), the kernel's records of
programs that start tell what it had in memory, as with oncpu.
"""

from __future__ import annotations

from dataclasses import replace

from tracer.probe import Column, Loss, Map, Member, Probe, Table, Tracepoint
from tracer.probes.oncpu import PROBE as ONCPU

PROBE = Probe(
    name="offcpu",
    summary="where tasks block and for how long: off-CPU time by task and stack",
    tier="deep",
    reader="stacks",
    requires=("cpustate",),
    filters=("pid", "cgroup"),
    aliases=("offcputime",),
    settings={
        "OFFCPU_MINIMUM_NS": 1_000_000,
        "OFFCPU_SAMPLE": 8,
        "OFFCPU_TASKS": 32768,
        "OFFCPU_KEYS": 16384,
        "OFFCPU_STACKS": 8192,
    },
    hooks=(
        Tracepoint("sched:sched_switch", ("bool", "struct task_struct *", "struct task_struct *"), everywhere=True),
        Tracepoint("sched:sched_waking", ("struct task_struct *",), everywhere=True, timed=False),
    ),
    members=(
        Member("task_struct.state", otherwise=("task_struct.__state",)),
        *ONCPU.members,
    ),
    enums=ONCPU.enums,
    maps=(Map("offcpu_rows", "offcpu_row", ("cpu",)), Map("offcpu_control", "stack_control", ())),
    plain_maps=(
        "offcpu_counts_0",
        "offcpu_counts_1",
        "offcpu_stacks_0",
        "offcpu_stacks_1",
        "offcpu_spill_0",
        "offcpu_spill_1",
        "offcpu_tasks",
    ),
    tables=(
        Table(
            "samples",
            help="blocks by the CPU where they began, the task, the stack and who woke it",
            keys=("cpu", "tid", "stack", "state", "waker_kind", "waker_vector", "waker_comm"),
            columns=(
                Column("pid", "", "process id"),
                Column("tid", "", "thread id"),
                Column("comm", "", "thread's name"),
                Column("stack", "", "stack's id in stacks, 0 for one not taken"),
                Column("weight", "ns", "time off the CPU"),
                Column("count", "blocks", "how often it blocked there"),
                Column("state", "", "S interruptible, D not, I without load, T stopped, t traced, P parked, ? other"),
                Column(
                    "waker_kind",
                    "",
                    "t a task, s a softirq, h a hard interrupt; o nobody: still blocked at the end; a nobody: blocked "
                    "since before the start and at the end; empty: nobody was seen",
                ),
                Column("waker_vector", "", "of the softirq"),
                Column("waker_comm", "", "that thread's name"),
            ),
        ),
        *(table for table in ONCPU.tables if table.name in ("stacks", "frames")),
        Table(
            "short",
            help="blocks shorter than the minimum, by the CPU where they ended",
            map="offcpu_rows",
            by=("cpu",),
            counters=("short_blocks", "short_ns"),
            columns=(
                Column("short_blocks", "blocks", "how many"),
                Column("short_ns", "ns", "time off the CPU"),
            ),
        ),
    ),
    losses=(
        *(replace(loss, map="offcpu_rows") for loss in ONCPU.losses[:2]),
        Loss("full", "offcpu_rows", "use.full", "blocks not counted: too many different ones in the interval"),
        Loss("full", "offcpu_rows", "full_tasks", "blocks not counted: too many tasks"),
        Loss("negative", "offcpu_rows", "negative", "blocks that ended before they began, not counted"),
        Loss("unasked", "", "", "tasks asleep since before the recording that were not looked at, for want of time"),
        Loss("not_taken", "", "", "blocks of tasks that had blocked shortly before: their time has no stack"),
        *(loss for loss in ONCPU.losses if not loss.map),
    ),
)
