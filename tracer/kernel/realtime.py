"""Run before everything else: the real-time priority of a process that sleeps nearly always."""

from __future__ import annotations

import os
import resource
from pathlib import Path

__all__ = ["PRIORITY", "real_time", "throttled_percent"]

#: Before ordinary real-time work (50, as threaded interrupts have); behind the kernel's watchdog and stoppers (99).
PRIORITY = 90

#: Who runs so long without sleeping is not what it should be, and ended by the kernel (RLIMIT_RTTIME): SIGXCPU.
LONGEST_SECONDS = 5.0


def real_time() -> str:
    """Give this thread, and those it starts, SCHED_FIFO; return "" or why it can't have it."""
    try:
        limit = int(LONGEST_SECONDS * 1e6)
        resource.setrlimit(resource.RLIMIT_RTTIME, (limit, limit))
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError as error:
        # EPERM comes of either: of a group without real-time bandwidth (RT_GROUP_SCHED), or without CAP_SYS_NICE.
        why = " (its cgroup has no cpu.rt_runtime_us)" if _without_bandwidth() else ""
        return f"SCHED_FIFO: {error.strerror}{why}"
    return ""


def throttled_percent() -> int:
    """Return how much of a CPU real-time work may use before it is stopped for a while; 100 where it never is.

    Source: Documentation/scheduler/sched-rt-group.rst.
    """
    try:
        names = ("sched_rt_runtime_us", "sched_rt_period_us")
        runtime, period = (int(Path("/proc/sys/kernel", name).read_text()) for name in names)
    except (OSError, ValueError):
        return 100
    return 100 if runtime < 0 or period <= 0 else 100 * runtime // period


def _without_bandwidth() -> bool:
    """Return whether this process's cpu cgroup (v1) has no real-time bandwidth of its own."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        path = next(line.split(":", 2)[2] for line in lines if "cpu" in line.split(":", 2)[1].split(","))
        return int(Path(f"/sys/fs/cgroup/cpu{path}/cpu.rt_runtime_us").read_text()) == 0
    except (OSError, ValueError, StopIteration, IndexError):
        return False
