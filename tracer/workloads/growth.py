"""Memory that grows steadily and is given back at the end."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["Growth", "run"]

_STEPS = 10  # a second


class Growth(Workload):
    """Takes ``bytes_per_second`` for ``seconds``. It is the first that the kernel kills if memory runs out.

    The result: ``bytes`` taken.
    """

    def __init__(self, seconds: float, *, bytes_per_second: int) -> None:
        super().__init__("growth", seconds, length=seconds, bytes_per_second=bytes_per_second)


def run(child: Child, *, length: float, bytes_per_second: int) -> Work:
    """Prepare the process that grows."""
    # A container may forbid it; the size is bounded all the same.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")

    def work() -> dict[str, Any]:
        taken: list[bytearray] = []
        began = time.monotonic()
        while (passed := time.monotonic() - began) < length:
            due = int(passed * _STEPS) + 1 - len(taken)
            # Every page is written to, or the kernel would not have given any.
            taken += [bytearray(b"\1") * (bytes_per_second // _STEPS) for _ in range(due)]
            time.sleep(1 / _STEPS)
        return {"bytes": sum(map(len, taken))}

    return work
