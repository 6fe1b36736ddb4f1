"""Small workloads with known answers, for the demo and the selftest: each a process of its own, bounded in time.

A workload is a context manager of this process and a function ``run`` of its child's, both in one module.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tracer.kernel import cpus

__all__ = ["Places", "places"]


@dataclass(frozen=True)
class Places:
    """The CPU that workloads make busy, and those that stay free for others; the same one if there is only one."""

    busy: int
    free: tuple[int, ...]


def places() -> Places:
    """Choose among the CPUs this process may run on, never an isolated one unless there is no other."""
    allowed = sorted(os.sched_getaffinity(0) & set(cpus.online()))
    ordinary = [cpu for cpu in allowed if cpu not in cpus.undisturbed()] or allowed
    # The first CPU has the most to do for the system: it is the last one to be made busy.
    *free, busy = ordinary
    return Places(busy, tuple(free) or (busy,))
