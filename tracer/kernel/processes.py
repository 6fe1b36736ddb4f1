"""What a process may ask of the kernel for itself: its name, its end, its place among the others.

Standard library only: workloads run without site-packages.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

__all__ = ["cpu_ns", "die_with", "first_to_go", "own_name", "take_priority"]

# Source: include/uapi/linux/prctl.h.
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
# Source: include/linux/posix-timers_types.h: a process's clock of the scheduler is ~pid << 3 | CPUCLOCK_SCHED.
_CPUCLOCK_SCHED = 2

_libc = ctypes.CDLL(None, use_errno=True)


def die_with(parent: int) -> None:
    """Be killed when the process ``parent``, which must be the real parent, ends in whatever way.

    The kernel watches the thread that started this process, not all of it: start from one that lives on.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    # It may have ended before the kernel was asked.
    if os.getppid() != parent:
        os._exit(1)


def cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads of a process so far, as the scheduler counts it, ns. OSError if it is gone."""
    return time.clock_gettime_ns(~pid << 3 | _CPUCLOCK_SCHED)


def own_name(name: str) -> None:
    """Call this thread ``name`` wherever tasks are shown; the kernel keeps 15 bytes."""
    _libc.prctl(_PR_SET_NAME, ctypes.create_string_buffer(name.encode()[:15]), 0, 0, 0)


def first_to_go() -> None:
    """Have the kernel choose this process before all others when memory runs out."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def take_priority() -> str:
    """Run before ordinary tasks: SCHED_FIFO ("fifo"), else nice -20 ("nice"), else as anybody ("ordinary").

    The first is refused in a control group without real-time share (CONFIG_RT_GROUP_SCHED), both without CAP_SYS_NICE.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return "fifo"
    except OSError:
        pass
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        return "nice"
    except OSError:
        return "ordinary"
