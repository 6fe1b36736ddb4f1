"""Tasks that wait uninterruptibly (D state): they write to a frozen file system of our own."""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
import time
from pathlib import Path
from typing import Any

from tracer.kernel import processes, scratchfs
from tracer.workloads._child import Child, Work
from tracer.workloads._process import Workload

__all__ = ["Frozen", "run"]

#: The guard thaws so much later than the work should have, if the work did not.
_GRACE_SECONDS = 2.0


class Frozen(Workload):
    """``tasks`` tasks that are stuck for ``seconds``. The result: ``pids``, and ``stuck``, how many were seen in D.

    Frozen, the file system holds its writers in a wait that no signal ends: so a guard, a process that nothing here
    kills, thaws it when the work is over, late or dead.
    """

    def __init__(self, seconds: float, *, tasks: int = 1) -> None:
        super().__init__("frozen", seconds, length=seconds, tasks=tasks)


def run(child: Child, *, length: float, tasks: int) -> Work:
    """Make the file system and its guard."""
    folder = tempfile.mkdtemp(prefix="foreshock-frozen-")
    alive, ours = os.pipe()
    try:
        file_system = scratchfs.make(folder)
    except BaseException:
        scratchfs.remove(folder)
        raise
    begin, frozen = os.pipe()
    _guard(alive, (ours, frozen), begin, file_system, folder, length + _GRACE_SECONDS)

    def write() -> None:
        # A writer that held this would keep the guard from seeing that everybody else is gone.
        os.close(ours)
        Path(folder, "fs", str(os.getpid())).write_bytes(b"x")

    def work() -> dict[str, Any]:
        os.write(frozen, b"f")
        scratchfs.freeze(file_system)
        pids = [child.fork("stuck", write) for _ in range(tasks)]
        time.sleep(length)
        stuck = sum(_state(pid) == "D" for pid in pids)
        scratchfs.thaw(file_system)
        return {"pids": pids, "stuck": stuck}

    return work


def _guard(alive: int, others: tuple[int, ...], begin: int, file_system: int, folder: str, seconds: float) -> None:
    """Fork the process that thaws: when ``alive`` has no writer left, or ``seconds`` after ``begin`` was written to."""
    if os.fork():
        return
    try:
        os.setsid()
        processes.own_name("thaw-guard")
        # The parent would wait for a word from whoever holds its pipe.
        for descriptor in (0, 1, *others):
            os.close(descriptor)
        ready, _, _ = select.select([alive, begin], [], [])
        if alive not in ready:
            os.read(begin, 1)
            select.select([alive], [], [], seconds)
        with contextlib.suppress(OSError):
            scratchfs.thaw(file_system)
        select.select([alive], [], [])
        scratchfs.remove(folder)
    finally:
        os._exit(0)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""
