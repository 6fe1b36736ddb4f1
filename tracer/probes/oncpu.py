"""What CPUs execute: stacks sampled by a clock, 49 times a second on each CPU, by task.

49 Hz is in step with no timer that a kernel or a program usually has. Samples of the idle task are counted apart,
in ``clock``, and have no rows in ``samples``; isolated and nohz_full CPUs carry no clock and have no rows at all.

Overhead: about 10 µs per sample of a task, 49 times a second: 0.05 % of each CPU; 25 MB of kernel memory, and up to 16
MB, 1 MB per CPU, for records of programs that start, read once a second. A read takes 2 ms of the agent's CPU, the
first ones 100 ms for symbols.
Caveat: a program's stack is followed by frame pointers. A function without one hides the function that called it: glibc
on most distributions hides who called it. A program without any shows its innermost function alone.
Caveat: a process that has ended by the interval's end, or is another program (``exec``), can't be asked what it had in
memory. The kernel's records of programs that start, and of files that they map, tell, for the latest 8 programs of each
of the 8192 processes seen last. Of one that ran before the recording, and was never asked, user frames are one,
``[process ended]`` or ``[unknown before exec: NAME]``.
Caveat: where records are lost (``programs``), the kernel has no memory for them, or CPUs came online later, nobody
knows who has become another program since. Then only a process that was asked before and is the same still is believed
to have been so; user frames of all others until then are ``[unknown for want of records: NAME]``, whether there was an
exec or not.
Caveat: programs that a process is one after the other are told apart by their names. Where both have the same name and
the same addresses (neither is position-independent), the time of both is the first one's, for that interval.
Caveat: the clock also runs on idle CPUs, and wakes them.
"""

from __future__ import annotations

from tracer.probe import Clock, Column, Loss, Map, Member, Probe, Table

PROBE = Probe(
    name="oncpu",
    summary="what CPUs execute: sampled stacks by CPU and task",
    tier="deep",
    reader="stacks",
    filters=("pid", "cgroup"),
    aliases=("profile",),
    settings={"ONCPU_KEYS": 16384, "ONCPU_STACKS": 8192},
    hooks=(Clock(hz=49),),
    members=(
        Member("task_struct.cgroups"),
        Member("css_set.subsys"),
        Member("css_set.dfl_cgrp"),
        Member("cgroup_subsys_state.cgroup"),
        Member("cgroup.kn"),
        Member("kernfs_node.id"),
    ),
    enums=(("cgroup_subsys_id", "cpu_cgrp_id"),),
    maps=(
        Map("cpus", "cpu_row", ("cpu",)),
        Map("oncpu_rows", "oncpu_row", ("cpu",)),
        Map("oncpu_control", "stack_control", ()),
    ),
    plain_maps=(
        "oncpu_counts_0",
        "oncpu_counts_1",
        "oncpu_stacks_0",
        "oncpu_stacks_1",
        "oncpu_spill_0",
        "oncpu_spill_1",
    ),
    tables=(
        Table(
            "samples",
            help="samples by the CPU, the task and the stack they hit",
            keys=("cpu", "tid", "stack"),
            columns=(
                Column("pid", "", "process id"),
                Column("tid", "", "thread id"),
                Column("comm", "", "thread's name"),
                Column("stack", "", "stack's id in stacks, 0 for none"),
                Column("weight", "samples", "samples that hit it"),
            ),
        ),
        Table(
            "stacks",
            help="stacks not told before, innermost frame first",
            keys=("stack", "depth"),
            columns=(
                Column("stack", "", "id: a hash of its frames"),
                Column("depth", "", "0 for the innermost frame"),
                Column("frame", "", "frame's id in frames"),
            ),
        ),
        Table(
            "frames",
            help="frames not told before",
            keys=("frame",),
            columns=(
                Column("frame", "", "id: a hash of the rest"),
                Column("kind", "", "k kernel, u user"),
                Column("module", "", "file name of the program or library, or the kernel's module in brackets"),
                Column(
                    "symbol", "", "function, demangled; [unknown module+offset] in its file where there is no symbol"
                ),
                Column("build_id", "", "of that file, to find its symbols by later; empty if it has none"),
            ),
        ),
        Table(
            "clock",
            help="samples by what the CPU did, whatever the filters",
            map="oncpu_rows",
            by=("cpu",),
            counters=("busy", "idle"),
            columns=(
                Column("busy", "samples", "hit a task"),
                Column("idle", "samples", "hit the idle task"),
            ),
        ),
    ),
    losses=(
        Loss("collided", "oncpu_rows", "use.collided", "stacks lost: others had their places"),
        Loss("missed", "oncpu_rows", "use.missed", "stacks the kernel could not take"),
        Loss("full", "oncpu_rows", "use.full", "samples not counted: too many different ones in the interval"),
        Loss("programs", "", "", "records of programs that start, map files or end: nobody knows who became another"),
        Loss("ended", "", "", "stacks whose process had ended, or was another program, and nobody knew it"),
        Loss("late", "", "", "stacks whose process's functions were not found in time"),
        Loss("kernel_hidden", "", "", "intervals in which the kernel hid its functions"),
        Loss("unsettled", "", "", "intervals in which a program was still at work on the one before"),
    ),
)
