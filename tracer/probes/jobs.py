"""Which jobs and ranks are on this node, with their processes: by cgroups and environment, without configuration.

A process is looked at once: its cgroups (Slurm, Kubernetes, container runtimes) and, of its environment, a dozen
variables (SLURM_JOB_ID, SLURM_PROCID, RANK, LOCAL_RANK, WORLD_SIZE, …). Everything else in an environment is dropped
where it is read, in the privileged helper. Told are those that have used 0.25 s of CPU time, and ranks that sleep.

Overhead: nothing runs in the kernel. Every 10 s the CPU clocks of all processes are read, for at most 0.05 % of a CPU;
then /proc/PID of those that have become users of it, and of the others once, 32 per interval at most. Measured at one
read a second over ten minutes: 0.03 ms a second with 124 processes, 0.47 ms with 2,127; the first look at users 4 and
11 ms, at 139 that slept 7 ms (virtual AMD EPYC).
Caveat: a rank is known up to 10 s after it has used 0.25 s of CPU time, and known to have ended up to 10 s late. One
that sleeps is looked for after the others: with 2,000 processes a minute later.
Caveat: what a process put into its own environment after it began is not seen: ranks that a launcher forks without a
new program. A program may overwrite its environment (setproctitle); then the cgroups remain.
Caveat: of an environment the first 128 KiB are read; a variable's first 64 bytes are kept.
Caveat: a variable may have been set by anyone, or inherited by what runs on after a job.
"""

from __future__ import annotations

from tracer.probe import Column, Loss, Probe, Table

__all__ = ["PROBE"]

PROBE = Probe(
    name="jobs",
    summary="which jobs, ranks, pods and containers run here, and which processes they are",
    tier="light",
    reader="jobs",
    tables=(
        Table(
            "members",
            help="a process that belongs to one: when it is found, when it has ended, and every five minutes",
            keys=("pid", "job", "step", "pod", "namespace", "container", "comm", "cgroup"),
            gauges=("began_ns", "used_ns", "ended", "rank", "local_rank", "world_size", "node"),
            columns=(
                Column("pid", "", "process"),
                Column("began_ns", "ns", "when it began, of the node's monotonic clock, to 10 ms"),
                Column(
                    "used_ns",
                    "ns",
                    "CPU time of its threads in all its life, as of at most a turn ago; 0 when it has ended",
                ),
                Column("ended", "", "1 in the row that says that it is gone"),
                Column("rank", "", "of all ranks of the job or step; -1 where not known, as the next three"),
                Column("local_rank", "", "of those on this node"),
                Column("world_size", "", "how many ranks there are"),
                Column("node", "", "this node's number in the job"),
                Column("job", "", "id: by the cgroup, else by a variable"),
                Column("step", "", "of a Slurm job"),
                Column("pod", "", "name where a variable says it, else uid"),
                Column("namespace", "", "of the pod, where a variable says it"),
                Column("container", "", "first 12 digits of its id"),
                Column("comm", "", "name of the process"),
                Column("cgroup", "", "its cgroup; of a long path the end"),
            ),
        ),
    ),
    # It has no numbers of which something could be missing.
    losses=(
        Loss(
            *("unread", "", "", "environments that did not come in time: their processes have only what cgroups say"),
            harmless=True,
        ),
        Loss("untold", "", "", "processes beyond 1,024", harmless=True),
        Loss("foreign", "", "", "not in the host's pid namespace: processes are not looked at", harmless=True),
    ),
)
