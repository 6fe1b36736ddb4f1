"""Where the time of each process went, and who took it: other tasks, interrupts, its own quota, want of memory, sleep.

Each moment of a thread belongs to one part, and those of a process's threads are added up: ``running``; ``waiting``
(others had the CPU); ``throttled`` (the quota of its own cgroup, or of one above, kept it off: no neighbour did);
``softirq`` and ``hardirq`` (over it while it ran); ``reclaim`` and ``compaction`` (for want of memory, running or
asleep); and what it slept for. Running, reclaim and compaction while running, and interrupts are what the kernel calls
its run time; waiting and throttled are its run delay (/proc/PID/schedstat).

Overhead: about 110 ns per context switch, 70 ns per wake-up and 25 ns per softirq above an empty program, 0.3 to 0.6 µs
per interrupt over a task (measured with a pipe ping-pong on a virtual AMD EPYC); the whole switch 1.1 µs where six
tasks wait for each CPU. 8 MB of kernel memory and 120 KB per CPU. Where frequencies
show, the reader takes 20 µs more per CPU and interval.
Caveat: a wait belongs to the interval in which it ends, with all of its time; how long those have lasted that go on is
in ``open_wait_ns``.
Caveat: softirqs and interrupts that a process caused itself (its own packets, its own timers) count as well.
Caveat: of a wait with more than 64 switches the part before those is shared out by blocks of 32 switches and 4 ms, as
if those in it had taken turns all the time (of more than eight, one of a name and cgroup stands for all of it); where
that was longer than a second or so before the interval's end, it has no holder (``earlier``): intervals above 1 s know
less.
Caveat: softirqs that have the CPU while a process waits are told by the vector that has the most of them in the
stay of one task on that CPU, or, where that was long ago, in the longest of 32 stays.
Caveat: lowered frequency is read from sysfs where the machine shows it (``thermal_throttle``; ``cpufreq`` and a nominal
frequency), once per interval, and charged to a thread by the CPU where it ran last. Else those columns are absent.
Caveat: threads that neither ran nor went to sleep since the start have no time here, but for the first thread of a
process that stands for a job's rank (probe jobs): one that hangs is told, and what it sleeps for by its functions in
the kernel.
Caveat: 64 processes per interval are told one by one: ranks of jobs, one process of each, in at most three quarters of
the rows; then those with the most time lost or run. The others are told together as process 0.
Caveat: before v6.6 a thread that is woken while its cgroup is throttled may count waits right behind that as throttled,
and interrupts while it is throttled count as waiting (the kernel's sum is by the clock that leaves them out).
Caveat: what a thread sleeps for is what the kernel says: I/O (its own iowait), kernel locks that are fought over
(since v5.19), stops; else the kind of the system call that it is in, and of the file that this is about (x86-64 only,
not of 32-bit programs; elsewhere it is all ``sleep_ns``). A call that a stop interrupted goes on as ``sleep_ns``.
"""

from __future__ import annotations

from tracer.probe import Column, Loss, Map, Member, Probe, Table, Tracepoint, Vectors
from tracer.probes.runqueue import TASK_CGROUP

_THREAD = "struct task_struct *"

PROBE = Probe(
    name="ledger",
    summary="where the time of each process went, and who took it",
    tier="deep",
    reader="ledger",
    requires=("cpustate",),
    filters=("pid", "cgroup"),
    settings={"LEDGER_KEYS": 16384, "LEDGER_SUBJECTS": 64},
    hooks=(
        Tracepoint("sched:sched_switch", ("bool", _THREAD, _THREAD), everywhere=True),
        Tracepoint("sched:sched_wakeup", (_THREAD,), everywhere=True),
        Tracepoint("sched:sched_wakeup_new", (_THREAD,), everywhere=True),
        Tracepoint("sched:sched_migrate_task", (_THREAD, "int"), everywhere=True),
        Tracepoint("irq:softirq_exit", ("unsigned int",)),
        Tracepoint("irq:irq_handler_exit", ("int", "struct irqaction *", "int")),
        Vectors("exit"),
        Tracepoint("vmscan:mm_vmscan_direct_reclaim_begin", optional=True),
        Tracepoint("vmscan:mm_vmscan_direct_reclaim_end", optional=True),
        Tracepoint("vmscan:mm_vmscan_memcg_reclaim_begin", optional=True),
        Tracepoint("vmscan:mm_vmscan_memcg_reclaim_end", optional=True),
        Tracepoint("compaction:mm_compaction_begin", optional=True),
        Tracepoint("compaction:mm_compaction_end", optional=True),
        Tracepoint("lock:contention_begin", ("void *", "unsigned int"), optional=True, timed=False),
        Tracepoint("lock:contention_end", ("void *",), optional=True, timed=False),
    ),
    members=(
        Member("task_struct.pid"),
        Member("task_struct.tgid"),
        Member("task_struct.prio"),
        Member("task_struct.comm"),
        Member("task_struct.flags"),
        Member("task_struct.on_cpu"),
        Member("task_struct.on_rq"),
        Member("task_struct.group_leader"),
        Member("task_struct.state", otherwise=("task_struct.__state",)),
        Member("task_struct.cpu", otherwise=("task_struct.thread_info.cpu",)),
        Member("task_struct.in_iowait", optional=True, bit=True),
        # The system call it is in, and the file: x86-64 only.
        Member("task_struct.stack"),
        Member("task_struct.thread_info.status", optional=True),
        Member("pt_regs.orig_ax", optional=True),
        Member("pt_regs.di", optional=True),
        Member("task_struct.files"),
        Member("files_struct.fdt"),
        Member("fdtable.max_fds"),
        Member("fdtable.fd"),
        Member("file.f_inode"),
        Member("inode.i_mode"),
        Member("inode.i_sb"),
        Member("super_block.s_magic"),
        Member("irqaction.name"),
        # The quota: none without CONFIG_CFS_BANDWIDTH.
        Member("task_struct.se.cfs_rq", optional=True),
        Member("task_struct.sched_task_group", optional=True),
        Member("task_group.cfs_rq", optional=True),
        Member("cfs_rq.rq", optional=True),
        Member("rq.clock"),
        Member("cfs_rq.throttled_clock_self", optional=True),
        Member(
            "cfs_rq.throttled_clock_self_time",
            otherwise=("cfs_rq.throttled_clock_pelt_time", "cfs_rq.throttled_clock_task_time"),
            optional=True,
        ),
        *TASK_CGROUP,
    ),
    enums=(("cgroup_subsys_id", "cpu_cgrp_id"),),
    optional_enums=(("bpf_func_id", "BPF_FUNC_task_pt_regs"),),
    maps=(
        Map("ledger_tasks", "ledger_task", ("LEDGER_TASKS",)),
        Map("ledger_cpus", "ledger_cpu", ("cpu",)),
        Map("ledger_stays", "ledger_stay", ("cpu", "LEDGER_STAYS")),
        Map("ledger_blocks", "ledger_block", ("cpu", "LEDGER_LOG_BLOCKS")),
        Map("ledger_olds", "ledger_old", ("cpu", "LEDGER_OLDS")),
        Map("ledger_control", "stack_control", ()),
        Map("ledger_cells", "ledger_cell", ("cpu", "LEDGER_HALVES", "LEDGER_CELLS")),
        Map("ledger_calls", "ledger_call", ("LEDGER_CALL_ROWS",)),
    ),
    plain_maps=("ledger_counts",),
    tables=(
        Table(
            "time",
            help="time of each process's threads by what they did",
            keys=("pid",),
            columns=(
                Column("pid", "", "process; 0 for all that are not told one by one"),
                Column("comm", "", "its name"),
                Column("cgroup", "", "path of the cgroup that its CPU time is charged to"),
                Column("threads", "threads", "how many of them are known"),
                Column("wall_ns", "ns", "length of the interval, or of the part in which it was there"),
                Column("running_ns", "ns", "running, without the interrupts inside"),
                Column("waiting_ns", "ns", "of waits for a CPU that ended: what no quota took"),
                Column("throttled_ns", "ns", "of those waits: kept off by the quota of its own cgroup or of one above"),
                Column("reclaim_ns", "ns", "reclaiming memory itself, running or asleep"),
                Column("compaction_ns", "ns", "compacting memory itself, running or asleep"),
                Column("stall_asleep_ns", "ns", "of reclaim_ns and compaction_ns: asleep"),
                Column("unknown_ns", "ns", "between events of which one was not shown"),
                Column("wait_softirq_ns", "ns", "of waiting_ns: softirqs had the CPU"),
                Column("wait_hardirq_ns", "ns", "of waiting_ns: hard interrupts had the CPU"),
                Column("softirq_ns", "ns", "softirqs ran over it"),
                Column("hardirq_ns", "ns", "hard interrupts ran over it"),
                Column("sleep_ns", "ns", "asleep for what does not show: signals, page faults, calls not known"),
                Column("disk_ns", "ns", "asleep for I/O, by the kernel's own iowait"),
                Column("mutex_ns", "ns", "asleep for a mutex of the kernel"),
                Column("rwsem_ns", "ns", "asleep for a reader-writer semaphore of the kernel"),
                Column("rtlock_ns", "ns", "asleep for a priority-inheriting lock"),
                Column("uninterruptible_ns", "ns", "asleep uninterruptibly for anything else"),
                Column("stopped_ns", "ns", "stopped or traced"),
                Column("futex_ns", "ns", "asleep for other threads: locks, conditions, barriers of programs"),
                Column("socket_ns", "ns", "asleep in a call on a socket: receiving, sending, connecting, accepting"),
                Column("pipe_ns", "ns", "asleep in reading from or writing to a pipe"),
                Column("poll_ns", "ns", "asleep for one of several: poll, select, epoll, io_uring, eventfd"),
                Column("timer_ns", "ns", "asleep on purpose: nanosleep"),
                Column("child_ns", "ns", "asleep for the end of another process"),
                Column("file_ns", "ns", "asleep in a call on a file, not by iowait: network file systems, FUSE, flock"),
                Column("device_ns", "ns", "asleep in a call on a character device: its driver, such as a GPU's"),
                Column("open_wait_ns", "ns", "how long waits have lasted that went on at the end"),
                Column("waits", "waits", "for a CPU, ended"),
                Column("hot_ns", "ns", "of running_ns: its CPU, or that CPU's package, was throttled for heat"),
                Column("slow_ns", "ns", "of running_ns: what the nominal frequency of its CPU would have saved"),
            ),
        ),
        Table(
            "taken",
            help="who or what took that time",
            keys=("pid", "kind", "number", "name", "cgroup"),
            columns=(
                Column("pid", "", "the process that lost it, as in time"),
                Column(
                    "kind",
                    "",
                    "task: a process had the CPU it waited for; own: another of its own threads had it; idle: nobody "
                    "yet; earlier: not known, too many switches since; softirq, line, vector: what interrupted it; "
                    "wsoftirq: softirqs had the CPU it waited for; rest: small ones",
                ),
                Column("number", "", "the holder's process, softirq vector, interrupt line or x86 vector"),
                Column("name", "", "the holder's, the vector's or the interrupt handler's"),
                Column("cgroup", "", "the holder's, as in time"),
                Column("ns", "ns", "how much"),
            ),
        ),
    ),
    losses=(
        Loss(
            "collided", "ledger_cpus", "collided", "sightings of threads whose time is not counted: no place for them"
        ),
        Loss("full", "ledger_cpus", "use.full", "parts of time without who took them: too many different ones"),
        Loss("full_ns", "ledger_cpus", "full_ns", "ns of those", harmless=True),
        Loss("unmatched", "ledger_cpus", "unmatched", "switches that do not follow from the one before: in unknown_ns"),
        Loss("earlier_ns", "", "", "ns of waits without a holder, told as earlier", harmless=True),
        Loss("unsettled", "", "", "intervals in which a program was still at work on the one before"),
        Loss("untold", "", "", "small takers added up as the rest: more than 1024 in the interval", harmless=True),
    ),
)
