"""Which program a process was at which time, and what it had in memory: out of the kernel's own records of both.

A process is asked for its functions at the end of an interval. By then it may have ended, or be another program
(``exec``): then its ``maps`` say nothing, or what is wrong.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tracer.kernel.sideband import ENDED, EXEC, FORK, MAPPED, Record, Sideband
from tracer.kernel.symbols.programs import Program

__all__ = ["UNKNOWN", "History"]

#: In place of a program's start.
UNKNOWN = -1

_MAX_PROCESSES = 1 << 13
_MAX_PROGRAMS = 8  # of one process
_MAX_RECORDS = 1 << 16


@dataclass
class _Past:
    """What records tell of a process, the latest of which is of ``latest_ns``."""

    programs: list[Program] = field(default_factory=list)
    latest_ns: int = 0
    ended: bool = False

    @property
    def records(self) -> int:
        return sum(len(one.mapped) for one in self.programs)


class History:
    """The programs of the processes seen last. Any thread may ask.

    It is known by all records since some moment. Where some were lost or forgotten, that is the moment, and of what was
    before it only those programs are believed that are sure to be the same still: ``witnesses`` say which.
    """

    def __init__(self, sideband: Sideband) -> None:
        #: Each returns pids and starts of programs that it has asked, and that have not been replaced since.
        self.witnesses: list[Callable[[], Iterable[tuple[int, int]]]] = []
        self._sideband = sideband
        self._lock = threading.Lock()
        self._processes: OrderedDict[int, _Past] = OrderedDict()
        self._records = 0
        self._since_ns = 0
        #: Programs from before then by pid: since when a process is sure to be this one.
        self._sure: dict[int, int] = {}

    @property
    def lost(self) -> int:
        """How many records were lost so far."""
        return self._sideband.lost

    @property
    def trouble(self) -> str:
        """Why there are no records; "" if there are."""
        return self._sideband.trouble

    def update(self) -> None:
        """Take in what has happened until now."""
        with self._lock:
            records, whole = self._sideband.read()
            if not whole:
                self._begin_anew()
                return
            for record in records:
                self._add(record)
            self._trim()

    def miss(self, why: str) -> None:
        """Note that from now on records are not all: nobody records a CPU that comes online later."""
        self._sideband.trouble = why

    def at(self, pid: int, time_ns: int) -> int:
        """Return the start of the program that a process was then; ``UNKNOWN`` if nobody can tell.

        A program that nothing is known of has a start, too: that of the time of which everything is known.
        """
        with self._lock:
            starts = [one.start_ns for one in self._programs(pid) if one.start_ns <= time_ns]
            if starts:
                return starts[-1]
            return next((start for start in (self._first(pid), self._since_ns) if start <= time_ns), UNKNOWN)

    def next(self, pid: int, start_ns: int) -> int | None:
        """Return how the program after that one began; None if none is known."""
        with self._lock:
            return next((one.began for one in self._programs(pid) if one.start_ns > start_ns), None)

    def is_latest(self, pid: int, start_ns: int) -> bool:
        """Return whether a process is sure to be that program still, by the records so far."""
        with self._lock:
            return self._is_latest(pid, start_ns)

    def is_recorded(self, pid: int, start_ns: int) -> bool:
        """Return whether records tell of that program, and so what became of it."""
        with self._lock:
            return any(one.start_ns == start_ns for one in self._programs(pid))

    def program(self, pid: int, start_ns: int) -> Program | None:
        """Return what is known of a program; None if that is nothing, or not all."""
        with self._lock:
            found = next((one for one in self._programs(pid) if one.start_ns == start_ns), None)
            return found if found and found.whole else None

    def close(self) -> None:
        """Let go of the records."""
        with self._lock:
            self._sideband.close()

    def _begin_anew(self) -> None:
        self._begin(time.monotonic_ns())
        self._processes.clear()
        self._records = 0

    def _begin(self, since_ns: int) -> None:
        sure: dict[int, int] = {}
        for pid, start in (seen for witness in self.witnesses for seen in witness()):
            if self._is_latest(pid, start):
                sure[pid] = min(start, sure.get(pid, start))
        self._since_ns, self._sure = since_ns, sure

    def _programs(self, pid: int) -> list[Program]:
        past = self._processes.get(pid)
        return past.programs if past else []

    def _first(self, pid: int) -> int:
        return self._sure.get(pid, self._since_ns)

    def _is_latest(self, pid: int, start_ns: int) -> bool:
        starts = [one.start_ns for one in self._programs(pid)]
        if starts and starts[-1] > start_ns:
            return False
        return start_ns in starts or start_ns >= self._since_ns or start_ns == self._first(pid)

    def _add(self, record: Record) -> None:
        past = self._processes.setdefault(record.pid, _Past())
        self._processes.move_to_end(record.pid)
        past.latest_ns, past.ended = record.time_ns, record.kind == ENDED
        programs = past.programs
        if not programs and record.kind != FORK:
            programs.append(Program(self._first(record.pid), MAPPED))
        if record.kind == MAPPED:
            self._records += programs[-1].add(record)
        elif record.kind == EXEC:
            programs.append(Program(record.time_ns, EXEC))
        elif record.kind == FORK:
            others = self._programs(record.parent)
            parent = record.parent, others[-1].start_ns if others else self._first(record.parent)
            programs.append(Program(record.time_ns, FORK, parent))
        if len(programs) > _MAX_PROGRAMS:
            self._records -= len(programs.pop(0).mapped)

    def _trim(self) -> None:
        """Forget whose latest record is oldest. One that lives may be taken for what it is now: only since then."""
        since_ns = self._since_ns
        while self._processes and (len(self._processes) > _MAX_PROCESSES or self._records > _MAX_RECORDS):
            pid, past = self._processes.popitem(last=False)
            self._records -= past.records
            if not past.ended:
                since_ns = past.latest_ns
        if since_ns > self._since_ns:
            self._begin(since_ns)
