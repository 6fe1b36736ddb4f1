"""What threads slept for, in words. It is not lost: somebody has to do it first."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.units import percent

__all__ = ["SLEEPS", "asleep"]

#: What it is for, by the column of ``ledger.time``.
SLEEPS = {
    "futex_ns": "for other threads",
    "socket_ns": "on sockets",
    "pipe_ns": "on pipes",
    "poll_ns": "in poll",
    "disk_ns": "for the disk",
    "file_ns": "on files",
    "device_ns": "for devices",
    "timer_ns": "on purpose",
    "child_ns": "for its children",
    "mutex_ns": "for a mutex of the kernel",
    "rwsem_ns": "for a semaphore of the kernel",
    "rtlock_ns": "for a lock of the kernel",
    "uninterruptible_ns": "uninterruptibly",
    "stopped_ns": "stopped",
    "sleep_ns": "for something else",
}
#: Sleep is worth a word if it is so much of the time.
_LEAST_ASLEEP = 0.02
_MOST_NAMED = 3


def asleep(times: Mapping[str, int], lost_ns: int, threads: int) -> str:
    """Say for what it slept: ``Asleep 62 % of its time: for other threads 40, on sockets 20.``; "" if hardly.

    ``times`` are its sums of ``ledger.time`` by column.
    """
    slept = sorted(((times[name], words) for name, words in SLEEPS.items()), reverse=True)
    asleep_ns = sum(ns for ns, _ in slept)
    whole_ns = times["running_ns"] - times["slow_ns"] + lost_ns + asleep_ns
    if not whole_ns or asleep_ns < _LEAST_ASLEEP * whole_ns:
        return ""
    named = [f"{words} {percent(ns / whole_ns).removesuffix(' %')}" for ns, words in slept[:_MOST_NAMED] if ns]
    whose = "its threads' time" if threads > 1 else "its time"
    return f"Asleep {percent(asleep_ns / whole_ns)} of {whose}: {', '.join(named)}."
