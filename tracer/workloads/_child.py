"""The child's side of a workload: it tells that it is ready, waits for the go, works, tells what it did.

Started without site-packages, so that it is there in 30 ms: standard library and tracer.kernel's plain modules only.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tracer.kernel import processes

__all__ = ["Child", "main"]

Work = Callable[[], dict[str, Any]]

#: How long it may take to get ready.
_READY_SECONDS = 300.0


class Child:
    """What a workload's ``run(child, ...)`` gets; it returns a function that works and says what it did."""

    def fork(self, name: str, body: Callable[[], None]) -> int:
        """Run ``body`` in a process of its own, which ends with this one. Returns its id."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            processes.die_with(parent)
            processes.own_name(name)
            body()
        finally:
            os._exit(0)


def main(parent: str, module: str, seconds: str, arguments: str) -> None:
    """Run the workload ``module`` for a parent that reads standard output and writes standard input."""
    processes.die_with(int(parent))
    processes.own_name(module)
    # Its own bound, whatever becomes of the parent: the default action of SIGALRM ends a process.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, _READY_SECONDS)
    try:
        work: Work = import_module(f"tracer.workloads.{module}").run(Child(), **json.loads(arguments))
        # It waits for its go as long as its parent lives: attaching and the scenes before take what they take.
        signal.setitimer(signal.ITIMER_REAL, 0)
        _tell({"ready": True})
        if sys.stdin.buffer.read(1):
            signal.setitimer(signal.ITIMER_REAL, float(seconds))
            _tell(work())
            # Stay until the parent has looked: its pid, and its namespaces, are its own until then.
            sys.stdin.buffer.read(1)
    except Exception as error:  # told to the parent, which raises it
        _tell({"error": f"{type(error).__name__}: {error}"})


def _tell(value: dict[str, Any]) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")
