"""Context switches that the kernel counted and no program was shown: the tracepoints' own losses.

Nothing else tells of them: the kernel counts no miss for an event it does not show. Seen on a 6.18 kernel, a few in
ten thousand, for ftrace as for BPF.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from tracer.kernel.session import Session
from tracer.probe import Probe

__all__ = ["Reader"]

_ROW = np.dtype([("made", "u8"), ("seen", "u8")])
#: /proc/stat takes 0.1 ms, and milliseconds on a node with hundreds of CPUs and thousands of interrupt lines.
_LEAST_SECONDS, _MAX_SHARE = 5.0, 0.001
_TRIES = 5


class Reader:
    """Fills ``cpustate.check`` by comparing the programs' count with ``ctxt`` of /proc/stat.

    The two can't be read at one moment: where no moment without a switch is found, what is told is a lower bound.
    """

    def __init__(self, session: Session, probe: Probe) -> None:
        self._cpus = session.array("cpus")
        # The kernel's number is that of all CPUs.
        self._whole = session.options.cpus is None
        self._seen = self._made = self._told = 0
        self._next = 0.0
        self._begun = False

    def read(self, now_ns: int) -> dict[str, tuple[np.ndarray, Mapping[str, int]]]:
        """Return the table ``check``: one row if it was time to compare."""
        began = time.monotonic()
        if not self._whole:
            return {"check": (np.zeros(0, dtype=_ROW), {})}
        if began < self._next:
            return {"check": (np.zeros(0, dtype=_ROW), {"unseen": 0})}
        if not self._begun:
            self._begun = True
            self._seen, self._made, _ = self._counts()
            return {"check": (np.zeros(0, dtype=_ROW), {"unseen": 0})}
        _, made, seen = self._counts()
        made, seen = made - self._made, seen - self._seen
        unseen = max(0, made - seen - self._told)
        self._told += unseen
        rows = np.array([(made, seen)], dtype=_ROW)
        now = time.monotonic()
        self._next = now + max(_LEAST_SECONDS, (now - began) / _MAX_SHARE)
        return {"check": (rows, {"unseen": unseen})}

    def complete(self) -> None:
        """Let the next read compare, whatever it costs."""
        self._next = 0.0

    def close(self) -> None:
        self._cpus = np.zeros(0)

    def _counts(self) -> tuple[int, int, int]:
        """Return the programs' count, the kernel's, and the programs' again: the same, if that can be had."""
        for _ in range(_TRIES):
            before, made, after = self._count(), _switches(), self._count()
            if before == after:
                break
        return before, made, after

    def _count(self) -> int:
        return int(self._cpus["switches"].sum())


def _switches() -> int:
    with open("/proc/stat", "rb") as file:
        for line in file:
            if line.startswith(b"ctxt "):
                return int(line.split()[1])
    return 0
