"""A cluster's recordings, one after the other: healthy nodes, and between them those with a fault."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench.machine import CHECKOUT, say

from .faults import Fault
from .node import WEIGHT, Node, group, recorder

__all__ = ["BEGIN_S", "loaded", "record", "record_all"]

SECONDS = 16
#: After the node's own baseline, the first third.
BEGIN_S = 6.0
_LAUNCH = "from tests.calm.loads import forks; forks(3600)"


def record_all(node: Node, folder: Path, prefix: str, healthy: int, faults: Sequence[Fault]) -> list[Path]:
    """Record so many healthy nodes, and one with each of ``faults``; return those of the healthy ones."""
    paths = [folder / f"{prefix}{number:02}.fsk" for number in range(healthy)]
    # Evenly among them: what else the machine does changes from minute to minute.
    places = [(place + 0.5) * healthy / len(faults) for place in range(len(faults))]
    for number, path in enumerate(paths):
        record(node, path)
        for fault, place in zip(faults, places, strict=True):
            if number <= place < number + 1:
                record(node, folder / f"{fault.name}.fsk", fault)
    return paths


def record(node: Node, path: Path, fault: Fault | None = None, seconds: float = SECONDS) -> None:
    """Record the node as the host that the file is named for, with a fault from ``BEGIN_S`` on."""
    with ExitStack() as stack:
        if fault and fault.early:
            stack.enter_context(fault.begin(node))
        recording = recorder(path, path.stem, seconds, node.foreshock)
        if fault and not fault.early:
            time.sleep(BEGIN_S)
            stack.enter_context(fault.begin(node))
        if recording.wait():
            raise SystemExit(f"twins: {path.name} could not be recorded")
    say(f"twins: recorded {path.stem}")


@contextlib.contextmanager
def loaded() -> Iterator[None]:
    """Short programs one after the other on every CPU meanwhile: they take what the job leaves, and a little more.

    In a cgroup that counts as much as the job's they have nearly all of both CPUs, and its storage, too: measured, a
    rank that wants half of its CPU had 3 % of it, with a thief or without.
    """
    with group("launchers", 1 / WEIGHT) as own:
        process = subprocess.Popen([sys.executable, "-c", _LAUNCH], cwd=CHECKOUT, start_new_session=True)
        try:
            own.add(process.pid)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
