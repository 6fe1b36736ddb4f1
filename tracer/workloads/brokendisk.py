"""Lines of the kernel's own in its log: I/O errors of a loop device that has lost its file."""

from __future__ import annotations

import time
from typing import Any

from tracer.kernel import loopdisk
from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["BrokenDisk", "run"]


class BrokenDisk(Workload):
    """Reads once a second for ``seconds``, in vain. The result: ``device``, ``reads``."""

    def __init__(self, seconds: float) -> None:
        super().__init__("brokendisk", seconds, length=seconds)


def run(child: Child, *, length: float) -> Work:
    """Make the device."""
    device, descriptor = loopdisk.make_broken()

    def work() -> dict[str, Any]:
        end, reads = time.monotonic() + length, 0
        while time.monotonic() < end:
            loopdisk.fail_to_read(descriptor)
            reads += 1
            time.sleep(min(1.0, max(0.0, end - time.monotonic())))
        return {"device": device, "reads": reads}

    return work
