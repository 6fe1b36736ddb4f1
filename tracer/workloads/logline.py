"""One line in the kernel's log that says it is a test."""

from __future__ import annotations

import os
import time
from typing import Any

from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["TEXT", "LogLine", "run"]

TEXT = "foreshock: this is a test"
#: Level "notice": it reaches no console that is set up as usual.
_LINE = f"<5>{TEXT}\n".encode()


class LogLine(Workload):
    """Writes the line as the work begins, and lasts for ``seconds``. The result: ``lines``."""

    def __init__(self, seconds: float) -> None:
        super().__init__("logline", seconds, length=seconds)


def run(child: Child, *, length: float) -> Work:
    """Open the log."""
    log = os.open("/dev/kmsg", os.O_WRONLY | os.O_CLOEXEC)

    def work() -> dict[str, Any]:
        os.write(log, _LINE)
        time.sleep(length)
        return {"lines": 1}

    return work
