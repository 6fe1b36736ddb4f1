"""One process and what it belongs to, as one moment shows both; and all processes of a job."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tracer.kernel.census import Process, cgroup_paths, process
from tracer.kernel.jobs import Labels, labels

__all__ = ["Found", "look", "members_of"]

_MOST = 32768


class Found(NamedTuple):
    """``answered``: its environment could be read, or does not exist."""

    process: Process
    labels: Labels
    answered: bool


def look(pid: int, variables: Callable[[int], bytes]) -> Found | None:
    """Return a process with what it belongs to; None when it is gone, or its number another one's meanwhile.

    ``variables`` returns what ``jobs.chosen`` does of a process's environment, or raises OSError.
    """
    before = process(pid)
    if before is None:
        return None
    told = None
    with suppress(OSError):
        told = variables(pid)
    paths = cgroup_paths(pid)
    after = process(pid)
    # A name may have changed in between, the beginning can't.
    if after is None or after.began_ticks != before.began_ticks:
        return None
    return Found(after, labels(told or b"", paths), told is not None)


def members_of(job: bytes, rank: int | None, variables: Callable[[int], bytes]) -> tuple[list[Found], set[bytes]]:
    """Return all processes of a job, or of one of its ranks, the oldest first; and the names of all jobs seen.

    A job is a Slurm job's id, or what else ``Labels.job`` is; or the name of a pod. b"" is any.
    """
    members: list[Found] = []
    jobs: set[bytes] = set()
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[:_MOST]:
        found = look(pid, variables)
        if found is None or found.labels == Labels():
            continue
        one = found.labels
        jobs.update(filter(None, (one.job, one.pod)))
        if (not job or job in (one.job, one.pod)) and rank in (None, one.rank):
            members.append(found)
    return sorted(members, key=lambda one: one.process.began_ticks), jobs
