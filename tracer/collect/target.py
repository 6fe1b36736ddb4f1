"""A job or a rank that is asked for by its name, found among this node's processes: what it is traced by."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace

from tracer.collect.request import Request
from tracer.errors import UsageError
from tracer.escape import printable
from tracer.kernel import cpus, privilege
from tracer.kernel.census import cpu_ns
from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.deeds import Deeds
from tracer.kernel.helper import Helper
from tracer.kernel.members import members_of

__all__ = ["IN_HOST_PIDS", "for_job"]

IN_HOST_PIDS = "run foreshock in the host's: docker --pid=host, hostPID: true, or nsenter -t 1 -p"

_SHOWN = 6
_COUNTED = "a rank is known where its number of ranks is, too (RANK and WORLD_SIZE, SLURM_PROCID and SLURM_NTASKS); "
_NOBODY = "no process here says of itself, or by its cgroup, whose it is"


def for_job(request: Request, names: CgroupNames) -> tuple[Request, list[str]]:
    """Return the request with the filter that a job, a rank or both mean here, and a note that says which.

    Their cgroup, if nothing else is in it; else the process, if it is one, or of a rank the one that has used the CPU
    most: the first is often a shell that waits. Otherwise everything is traced, and the job's processes are labelled.
    Raises UsageError when there is no such process.

    Call it before there is a thread.
    """
    if request.job is None and request.rank is None:
        return request, []
    if request.pid is not None or request.cgroup is not None:
        raise UsageError("--job and --rank choose the processes themselves.", hint="leave --pid and --cgroup out")
    named = {"job": request.job, "rank": request.rank}
    asked = " ".join(f"--{name} {value}" for name, value in named.items() if value is not None)
    if not privilege.may_trace():
        return request, []  # attaching says so
    if not cpus.in_host_pids():
        raise UsageError(f"{asked}: in this pid namespace other processes can't be seen.", hint=IN_HOST_PIDS)
    helper = Helper(Deeds({}, ()), lambda: None)
    try:
        found, jobs = members_of((request.job or "").encode(errors="surrogateescape"), request.rank, helper.variables)
    finally:
        helper.close()
    if not found:
        shown = ", ".join(printable(job) for job in sorted(jobs)[:_SHOWN]) + (", …" if len(jobs) > _SHOWN else "")
        raise UsageError(
            f"{asked}: no process of it runs on this node.",
            hint=f"{_COUNTED if request.rank is not None else ''}here are {shown}" if jobs else _NOBODY,
        )
    whose = {one.labels.job or one.labels.pod for one in found}
    if request.job is None and len(whose) > 1:
        told = ", ".join(printable(one) or "no job" for one in sorted(whose)[:_SHOWN])
        raise UsageError(f"{asked}: there are several: of {told}.", hint="say --job as well")
    pids = [one.process.pid for one in found]
    group = _group_of_its_own(pids, names)
    if group:
        return replace(request, cgroup=group), [f"{asked}: cgroup {printable(group)} is traced"]
    if len(pids) == 1 or request.rank is not None:
        rest = f"; not its {len(pids) - 1} other processes" if len(pids) > 1 else ""
        chosen = max(pids, key=lambda pid: cpu_ns(pid) or 0)
        return replace(request, pid=chosen), [f"{asked}: process {chosen} is traced{rest}"]
    note = f"{asked}: its {len(pids)} processes share no cgroup of their own: everything is traced, and they are named"
    return replace(request, job=None, rank=None), [note]


def _group_of_its_own(pids: Collection[int], names: CgroupNames) -> str:
    """Return the path of the one cgroup that these processes, and nobody else, are in; "" when there is none."""
    paths = {names.cgroup_of(pid) for pid in pids}
    if len(paths) != 1:
        return ""
    (path,) = paths
    inside = names.processes(path)
    return os.fsdecode(path) if inside and inside <= set(pids) else ""
