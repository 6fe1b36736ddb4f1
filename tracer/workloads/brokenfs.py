"""A file system of our own whose errors the kernel reports, as it would those of damaged data."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from tracer.kernel import scratchfs
from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["BrokenFs", "run"]


class BrokenFs(Workload):
    """Has the kernel report an error once a second for ``seconds``. The result: ``device``, ``errors``."""

    def __init__(self, seconds: float) -> None:
        super().__init__("brokenfs", seconds, length=seconds)


def run(child: Child, *, length: float) -> Work:
    """Make the file system."""
    folder = tempfile.mkdtemp(prefix="foreshock-brokenfs-")
    try:
        file_system = scratchfs.make(folder)
    finally:
        # From now on only the descriptor keeps it: it ends with this process, however that ends.
        scratchfs.remove(folder)

    def work() -> dict[str, Any]:
        end, errors, device = time.monotonic() + length, 0, ""
        while time.monotonic() < end:
            device = scratchfs.fail(file_system)
            errors += 1
            time.sleep(min(1.0, max(0.0, end - time.monotonic())))
        return {"device": device, "errors": errors}

    return work
