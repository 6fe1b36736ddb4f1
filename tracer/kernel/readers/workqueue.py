"""Works that run on and pools in which none is begun, from the live rows of bpf/workqueue.h."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tracer.kernel.cpus import in_host_pids
from tracer.kernel.hungtasks import TaskStacks, task_status
from tracer.kernel.session import Session
from tracer.probe import Probe

__all__ = ["Reader"]

_ROW = np.dtype(
    [
        ("kind", "S8"),
        ("cpu", "i4"),
        ("pool", "i4"),
        ("since_ns", "u8"),
        ("age_ns", "u8"),
        ("function", "u8"),
        ("pid", "u4"),
        ("comm", "S32"),
        ("stack", "S512"),
    ]
)
#: A pool is listed after so long; the kernel's watchdog waits for 30 s.
_POOL_NS = 1_000_000_000
_MOST_POOLS, _MOST_WORKS = 32, 16

_Row = tuple[bytes, int, int, int, int, int, int, bytes, bytes]


class Reader:
    """Fills ``workqueue.open``: pools first, then works, oldest first."""

    def __init__(self, session: Session, probe: Probe) -> None:
        self._pools = session.array("workqueue_pools")
        self._workers = session.array("workqueue_workers")
        self._softirqs = session.array("workqueue_softirqs")
        self._listed_ns = {**probe.settings, **session.options.constants}["WORKQUEUE_LISTED_NS"]
        self._able = in_host_pids()
        self._stacks = TaskStacks(session.stack)
        self._over: set[tuple[int, int]] = set()
        self._oldest_ns = 0

    def read(self, now_ns: int) -> dict[str, tuple[np.ndarray, Mapping[str, int]]]:
        """Return the table ``open``; ``untold`` counts those beyond the limits, ``stackless`` as in ``hung``."""
        pools = self._overdue_pools(now_ns)
        stuck = {pool[1] for pool in pools if pool[1] >= 0}
        works = self._overdue_works(now_ns, stuck)
        self._stacks.begin({(work[6], work[3]) for work in works[:_MOST_WORKS]})
        rows = [*pools[:_MOST_POOLS], *filter(None, map(self._checked, works[:_MOST_WORKS]))]
        untold = max(0, len(pools) - _MOST_POOLS) + max(0, len(works) - _MOST_WORKS)
        return {"open": (np.array(rows, dtype=_ROW), {"untold": untold, "stackless": self._stacks.missing})}

    def close(self) -> None:
        self._pools = self._workers = self._softirqs = np.zeros(0)

    def _overdue_pools(self, now_ns: int) -> list[_Row]:
        since = self._pools["since_ns"]
        # Compared first, as in ``Snapshots``: it changes meanwhile.
        places = (since != 0).nonzero()[0]
        rows = [
            (b"pool", int(row["cpu"]), int(row["id"]), since_ns, now_ns - since_ns, int(row["function"]), 0, b"", b"")
            for row in self._pools[places].copy()
            if 0 < (since_ns := int(row["since_ns"])) <= now_ns - _POOL_NS
        ]
        return sorted(rows, key=lambda row: row[3])

    def _overdue_works(self, now_ns: int, stuck: set[int]) -> list[_Row]:
        """Return works that have run for long, or are at it on the CPU of a pool that is stuck."""
        # A look reads thousands of words. Until the oldest work of the last look is old enough, none is.
        if not stuck and now_ns - self._oldest_ns < self._listed_ns:
            return []
        self._oldest_ns = now_ns
        rows = [*self._works(self._workers, now_ns, stuck), *self._works(self._softirqs, now_ns, stuck)]
        seen = {(row[6], row[3]) for row in rows}
        self._over &= seen
        return sorted((row for row in rows if (row[6], row[3]) not in self._over), key=lambda row: row[3])

    def _works(self, running: np.ndarray, now_ns: int, stuck: set[int]) -> Iterator[_Row]:
        started = running["started_ns"]
        for row in running[(started != 0).nonzero()].copy():
            if not 0 < row["started_ns"] < now_ns:
                continue
            age_ns, cpu = now_ns - int(row["started_ns"]), int(row["cpu"])
            self._oldest_ns = min(self._oldest_ns, now_ns - age_ns)
            if age_ns >= self._listed_ns or (cpu in stuck and age_ns >= _POOL_NS):
                pid = 0 if running is self._softirqs else int(row["pid"])
                yield b"work", cpu, -1, now_ns - age_ns, age_ns, int(row["function"]), pid, b"", b""

    def _checked(self, row: _Row) -> _Row | None:
        """Add a worker's name and stack; None if it isn't at work: its end was not seen."""
        pid, since_ns = row[6], row[3]
        if not pid or not self._able:
            return row
        status = task_status(pid)
        # "kworker/3:1+events": the kernel puts the plus there for as long as the worker is at work.
        if status is None or b"+" not in status.comm:
            self._over.add((pid, since_ns))
            return None
        return (*row[:7], status.comm, self._stacks.of(pid, since_ns))
