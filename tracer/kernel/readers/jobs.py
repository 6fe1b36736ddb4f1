"""Jobs and ranks on this node: users of the CPU first, then who sleeps, each looked at once, a few per interval."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tracer.kernel.census import Census, Process
from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.cpus import in_host_pids
from tracer.kernel.jobs import UNKNOWN, Labels
from tracer.kernel.members import look
from tracer.kernel.session import Session
from tracer.probe import Probe

__all__ = ["Reader"]

_ROW = np.dtype(
    [
        ("pid", "u4"),
        ("began_ns", "u8"),
        ("used_ns", "u8"),
        ("ended", "u1"),
        ("rank", "i4"),
        ("local_rank", "i4"),
        ("world_size", "i4"),
        ("node", "i4"),
        ("job", "S64"),
        ("step", "S16"),
        ("pod", "S64"),
        ("namespace", "S64"),
        ("container", "S12"),
        ("comm", "S16"),
        ("cgroup", "S192"),
    ]
)
#: Of what uses less only ranks are told: one that hangs is what a job waits for. Pauses and sidecars are nobody.
LEAST_NS = 250_000_000
#: At most so many environments are read per interval, so many processes wait for it, and so many are known.
_LOOKS, _MOST_WAITING, _MOST_KNOWN = 32, 4096, 1024
#: A turn over all processes may use so much of one CPU, and comes this often at most.
_SHARE, _TURN_NS = 0.0005, 10_000_000_000
#: Everything is told again, for those who read only a part.
_AGAIN_NS = 300_000_000_000

_ENDED = _ROW.names.index("ended") if _ROW.names else 0

Read = dict[str, tuple[np.ndarray, Mapping[str, int]]]


class _Member(NamedTuple):
    process: Process
    labels: Labels
    cgroup: bytes


class Reader:
    """Fills ``jobs.members``: a process when it is found, when it has ended, and every five minutes."""

    def __init__(self, session: Session, probe: Probe) -> None:
        del probe
        self._session = session
        self._cgroups = CgroupNames()
        self._census = Census(LEAST_NS)
        self._waiting: deque[int] = deque(maxlen=_MOST_WAITING)
        self._sleepers: deque[int] = deque(maxlen=_MOST_WAITING)
        self._slept: set[int] = set()  # those that have been in that queue
        self._known: dict[int, _Member] = {}
        self._turn_ns = self._again_ns = 0
        self._untold = 0
        # In another pid namespace the programs' numbers are other processes'.
        self._able = in_host_pids()

    def read(self, now_ns: int) -> Read:
        """Return the table; ``unread`` counts environments that did not come, ``untold`` processes beyond the limit."""
        self._untold = unread = 0
        rows: list[tuple[object, ...]] = []
        # The first read is a beginning: what it returned would be of no interval.
        if self._able and self._again_ns:
            if now_ns >= self._turn_ns:
                rows += self._turn(now_ns)
            for _ in range(min(_LOOKS, len(self._waiting) + len(self._sleepers))):
                member, answered = self._look((self._waiting or self._sleepers).popleft())
                unread += not answered
                if member:
                    rows.append(self._row(member))
            self._session.ranks = self._ranks()
            if now_ns >= self._again_ns:
                rows = [*(row for row in rows if row[_ENDED]), *map(self._row, self._known.values())]
        if now_ns >= self._again_ns:
            self._again_ns = now_ns + _AGAIN_NS
        losses = {"unread": unread, "untold": self._untold, "foreign": int(not self._able)}
        return {"members": (np.array(rows, _ROW), losses)}

    def forget(self) -> None:
        """Tell everything again: for who can't read what came before."""
        self._again_ns = min(self._again_ns, 1)

    def close(self) -> None:
        """Nothing is open."""

    def _turn(self, now_ns: int) -> list[tuple[object, ...]]:
        """Look for new users, and return the rows of members that have ended."""
        began_ns = time.thread_time_ns()
        came, census = self._census.turn(), self._census
        gone = [pid for pid in self._known if pid not in census.clocks or pid in census.reused]
        rows = [self._row(self._known.pop(pid), ended=1) for pid in gone]
        self._waiting.extend(pid for pid in came if pid not in self._known)
        # A shell that waits for a rank has used less than that.
        sleepers = sorted(census.clocks.keys() - census.users, key=lambda pid: -census.clocks[pid])
        self._slept = (self._slept & census.clocks.keys()) - census.reused
        self._sleepers.extend(pid for pid in sleepers if pid not in self._slept)
        self._slept.update(sleepers)
        cost_ns = time.thread_time_ns() - began_ns
        self._turn_ns = now_ns + max(_TURN_NS * 99 // 100, int(cost_ns / _SHARE))
        return rows

    def _look(self, pid: int) -> tuple[_Member | None, bool]:
        """Return a process as a member of something, and whether its environment could be asked for."""
        found = look(pid, self._session.variables)
        if found is None or found.labels == Labels():
            return None, found is None or found.answered
        if pid not in self._census.users and not self._is_new_rank(found.labels):
            return None, found.answered
        if len(self._known) >= _MOST_KNOWN and pid not in self._known:
            self._untold += 1
            return None, found.answered
        self._known[pid] = _Member(found.process, found.labels, self._cgroups.cgroup_of(pid))
        return self._known[pid], found.answered

    def _ranks(self) -> frozenset[int]:
        """Return a process for each rank, the first that was found: that used the CPU most."""
        found: dict[tuple[bytes, int], int] = {}
        for pid, member in self._known.items():
            if member.labels.rank != UNKNOWN:
                found.setdefault((member.labels.job, member.labels.rank), pid)
        return frozenset(found.values())

    def _is_new_rank(self, one: Labels) -> bool:
        """Return whether these are a rank's of which no process is known: others of it are shells that wait."""
        same = ((other.labels.job, other.labels.rank) for other in self._known.values())
        return one.rank != UNKNOWN and (one.job, one.rank) not in same

    def _row(self, member: _Member, ended: int = 0) -> tuple[object, ...]:
        process, one, cgroup = member
        used_ns = 0 if ended else self._census.clocks.get(process.pid, 0)
        numbers = one.rank, one.local_rank, one.world_size, one.node
        names = one.job, one.step, one.pod, one.namespace, one.container
        return (process.pid, max(0, process.began_ns), used_ns, ended, *numbers, *names, process.comm, cgroup[-192:])
