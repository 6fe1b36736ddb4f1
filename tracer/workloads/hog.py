"""A task that takes one CPU for itself, again and again, and gives it back in between."""

from __future__ import annotations

import os
import time
from typing import Any

from tracer.kernel import processes
from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["Hog", "run"]


class Hog(Workload):
    """Spins in user mode on ``cpu``: ``bursts`` times for ``burst`` seconds, with ``rest`` seconds in between.

    An ``urgent`` one comes before everybody else if it may (``priority`` of the result: fifo, nice, ordinary). Keep
    its burst below 0.9 s and nine tenths of the time: the kernel throttles real-time tasks at 95 % of a second.
    The result: ``bursts_ns``, the real length of each, ``cpu_ns`` used.
    """

    def __init__(self, cpu: int, *, bursts: int, burst: float, rest: float, urgent: bool = True) -> None:
        seconds = bursts * (burst + rest)
        super().__init__("hog", seconds, cpu=cpu, bursts=bursts, burst=burst, rest=rest, urgent=urgent)


def run(child: Child, *, cpu: int, bursts: int, burst: float, rest: float, urgent: bool) -> Work:
    """Prepare the hog in its own process."""
    os.sched_setaffinity(0, {cpu})

    def work() -> dict[str, Any]:
        priority = processes.take_priority() if urgent else "ordinary"
        before_ns = time.process_time_ns()
        lengths = []
        for _ in range(bursts):
            lengths.append(_spin(burst))
            time.sleep(rest)
        return {"priority": priority, "bursts_ns": lengths, "cpu_ns": time.process_time_ns() - before_ns}

    return work


def _spin(seconds: float) -> int:
    start_ns = now_ns = time.monotonic_ns()
    while now_ns - start_ns < seconds * 1e9:
        now_ns = time.monotonic_ns()
    return now_ns - start_ns
