"""A task that sleeps and wakes: how late it is shows what stands in its way."""

from __future__ import annotations

import os
import time
from typing import Any

from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["Victim", "run"]


class Victim(Workload):
    """Sleeps ``pause`` seconds again and again on ``cpu``, for ``seconds`` in all.

    The result: ``sleeps``, how many; ``slept_ns``, their real lengths together; ``cpu_ns`` used meanwhile, to fall
    asleep and to wake up; ``worst_ns``, how much longer than asked for the longest was.
    """

    def __init__(self, cpu: int, seconds: float, *, pause: float = 0.001) -> None:
        super().__init__("victim", seconds, cpu=cpu, length=seconds, pause=pause)


def run(child: Child, *, cpu: int, length: float, pause: float) -> Work:
    """Prepare the victim in its own process."""
    os.sched_setaffinity(0, {cpu})

    def work() -> dict[str, Any]:
        end_ns = time.monotonic_ns() + int(length * 1e9)
        sleeps, slept_ns, longest_ns = 0, 0, 0
        used_ns, now_ns = time.process_time_ns(), time.monotonic_ns()
        while now_ns < end_ns:
            time.sleep(pause)
            before_ns, now_ns = now_ns, time.monotonic_ns()
            sleeps += 1
            slept_ns += now_ns - before_ns
            longest_ns = max(longest_ns, now_ns - before_ns)
        used_ns = time.process_time_ns() - used_ns
        worst_ns = longest_ns - int(pause * 1e9)
        return {"sleeps": sleeps, "slept_ns": slept_ns, "cpu_ns": used_ns, "worst_ns": worst_ns}

    return work
