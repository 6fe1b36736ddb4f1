"""More tasks than one CPU can run: each waits for the others."""

from __future__ import annotations

import os
import time
from typing import Any

from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["Crowd", "run"]


class Crowd(Workload):
    """``tasks`` ordinary tasks that compute on ``cpu`` for ``seconds``. The result: ``cpu_ns`` of the first of them."""

    def __init__(self, cpu: int, seconds: float, *, tasks: int = 8) -> None:
        super().__init__("crowd", seconds, cpu=cpu, length=seconds, tasks=tasks)


def run(child: Child, *, cpu: int, length: float, tasks: int) -> Work:
    """Prepare the first task; the others are forked as the work begins."""
    os.sched_setaffinity(0, {cpu})

    def compute() -> None:
        end = time.monotonic() + length
        while time.monotonic() < end:
            pass

    def work() -> dict[str, Any]:
        for _ in range(tasks - 1):
            child.fork("crowd", compute)
        compute()
        return {"tasks": tasks, "cpu_ns": time.process_time_ns()}

    return work
