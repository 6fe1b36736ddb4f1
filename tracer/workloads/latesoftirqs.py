"""Softirqs that come late: a task keeps them switched off on one CPU."""

from __future__ import annotations

import os
import time
from typing import Any

from tracer.kernel import processes, slowprogram
from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["LateSoftirqs", "run"]


class LateSoftirqs(Workload):
    """Holds softirqs up on ``cpu`` for 10 to 40 ms at a time, ``share`` of the time for ``seconds``.

    The result: ``holds``, how often; ``longest_ns``.
    """

    def __init__(self, cpu: int, seconds: float, *, share: float = 0.5) -> None:
        super().__init__("latesoftirqs", seconds, cpu=cpu, length=seconds, share=share)


def run(child: Child, *, cpu: int, length: float, share: float) -> Work:
    """Load the program that is slow."""
    os.sched_setaffinity(0, {cpu})
    program = slowprogram.load()

    def work() -> dict[str, Any]:
        # Others on this CPU would let softirqs run between two holds.
        processes.take_priority()
        lengths = []
        end_ns = time.monotonic_ns() + int(length * 1e9)
        while (began_ns := time.monotonic_ns()) < end_ns:
            slowprogram.run(program)
            lengths.append(time.monotonic_ns() - began_ns)
            time.sleep(lengths[-1] / 1e9 * (1 / share - 1))
        return {"holds": len(lengths), "longest_ns": max(lengths)}

    return work
