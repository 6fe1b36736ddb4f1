"""Two processes that throw a byte back and forth: two context switches and two wake-ups per round."""

from __future__ import annotations

import os
from typing import Any

from tracer.workloads._child import Child, Work
from tracer.workloads._pace import portions
from tracer.workloads._process import Workload

__all__ = ["Pipes", "run"]


class Pipes(Workload):
    """Plays ``rounds`` rounds over two pipes, at most ``per_second`` (0: as fast as it goes).

    On the same ``cpu`` each round is two waits for it at least; None leaves both where the scheduler puts them.
    The result: ``rounds``.
    """

    def __init__(self, rounds: int, *, cpu: int | None = None, per_second: float = 0) -> None:
        seconds = rounds / per_second if per_second else rounds * 1e-3
        super().__init__("pipes", seconds, rounds=rounds, cpu=cpu, per_second=per_second)


def run(child: Child, *, rounds: int, cpu: int | None, per_second: float) -> Work:
    """Prepare both processes."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    there, back = os.pipe(), os.pipe()

    def echo() -> None:
        os.close(there[1])
        while byte := os.read(there[0], 1):
            os.write(back[1], byte)

    child.fork("pipes", echo)
    os.close(there[0])

    def work() -> dict[str, Any]:
        for portion in portions(rounds, per_second):
            for _ in range(portion):
                os.write(there[1], b"x")
                os.read(back[0], 1)
        return {"rounds": rounds}

    return work
