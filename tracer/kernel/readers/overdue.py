"""What has not ended on each CPU, judged from here: the only watch over CPUs that carry nothing of ours.

Sources: the live rows of cpustate (open softirqs and interrupts), cpustall (heartbeats, open stalls) and, if it is
attached, runqueue (who waits since when). Nothing is copied but the columns compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tracer.kernel.cpus import in_host_pids, undisturbed
from tracer.kernel.session import Session
from tracer.layouts import constants
from tracer.probe import Probe

__all__ = ["Reader"]

_ROW = np.dtype(
    [
        *(("cpu", "u4"), ("kind", "S12"), ("age_ns", "u8"), ("pid", "u4"), ("comm", "S16"), ("vector", "u4")),
        *(("fed_ns", "u8"), ("idle_ns", "u8")),
    ],
)
_NONE = np.zeros(0, dtype=_ROW)
_SETTING = "CPUSTALL_THRESHOLD_NS"
#: Waiting tasks looked up in /proc per interval, 50 µs each; the oldest first, the others next time.
_LOOKUPS = 16

_Ages = npt.NDArray[np.int64]


class Reader:
    """Fills ``cpustall.open`` with what is older than the probe's threshold.

    Without ``tasks`` no ``runnable`` is looked for: they alone take a look into /proc, where one may have to wait.
    """

    def __init__(self, session: Session, probe: Probe, *, tasks: bool = True) -> None:
        self._cpus = session.array("cpus")
        self._stalls = session.array("cpustall_rows")
        self._begun: tuple[np.ndarray, ...] = (
            self._stalls["since_ns"],
            self._cpus["softirq_entered_ns"],
            self._cpus["hardirq_entered_ns"],
        )
        self._since: tuple[np.ndarray, ...] = (*self._begun, self._stalls["heartbeat_ns"])
        self._threshold_ns = session.options.constants.get(_SETTING, probe.settings[_SETTING])
        # A nohz_full CPU takes no interrupt for as long as one task runs there.
        self._ticking = ~np.isin(np.arange(len(self._cpus)), list(undisturbed()))
        # Whether an old word is a wait only /proc tells, and in a pid namespace that is of other tasks.
        waits = tasks and "runqueue_sets" in session.shapes and in_host_pids()
        self._waits = _Waits(session.array("runqueue_sets")["ways"]) if waits else None

    def read(self, now_ns: int) -> dict[str, tuple[np.ndarray, Mapping[str, int]]]:
        """Return the table ``open``, oldest first within each kind."""
        found: list[np.ndarray] = []
        if not self._is_quiet(now_ns):
            stays = self._stays()
            found = [self._rows(kind, ages, stays) for kind, ages in self._ages(stays, now_ns)]
        if self._waits and now_ns >= self._waits.due_ns:
            running = self._stays()["pid"]
            found.append(self._waits.overdue(now_ns, self._threshold_ns, running, self._cpus["untraced"]))
        some = [rows for rows in found if len(rows)]
        return {"open": (np.concatenate(some) if some else _NONE, {})}

    def due_ns(self, now_ns: int) -> int:
        """Return when what goes on is overdue at the earliest; what is overdue by ``now_ns`` is left out.

        Heartbeats are, too: nobody is in so much of a hurry about them, and an idle CPU has none.
        """
        limit = np.uint64(max(0, now_ns - self._threshold_ns))
        young = [int(since[since > limit].min(initial=np.uint64(now_ns))) for since in self._begun]
        return min(young) + self._threshold_ns

    def close(self) -> None:
        self._cpus = self._stalls = np.zeros(0)
        self._begun = self._since = ()
        self._waits = None

    def _is_quiet(self, now_ns: int) -> bool:
        """Return whether nothing is that old, whatever it is: nearly always so, and quickly found out."""
        limit = np.uint64(max(0, now_ns - self._threshold_ns))
        # 0, which is no time, becomes the largest number.
        return not any((since - np.uint64(1) < limit).any() for since in self._since)

    def _stays(self) -> np.ndarray:
        """Return each CPU's running stay."""
        latest = self._cpus["switches"] % self._cpus["stays"].shape[1]
        stays: np.ndarray = self._cpus["stays"][np.arange(len(self._cpus)), latest]
        return stays

    def _ages(self, stays: np.ndarray, now_ns: int) -> Iterator[tuple[bytes, _Ages]]:
        switched = stays["started_ns"]
        yield b"stall", self._stall_ages(now_ns)
        softirq, hardirq = self._cpus["softirq_entered_ns"].copy(), self._cpus["hardirq_entered_ns"].copy()
        # Neither can be open across a switch: its end was missed.
        for entered in (softirq, hardirq):
            entered[entered < switched] = 0
        yield b"softirq", _ages(softirq, now_ns)
        yield b"hardirq", _ages(hardirq, now_ns)
        beats = self._stalls["heartbeat_ns"]
        busy = (stays["pid"] != 0) | (softirq > 0) | (hardirq > 0)
        seen = np.where(busy & self._ticking & (beats > 0), np.maximum(beats, switched), 0)
        yield b"heartbeat", _ages(seen, now_ns)

    def _stall_ages(self, now_ns: int) -> _Ages:
        since, seen = self._stalls["since_ns"].copy(), self._stalls["seen_ns"]
        # One sample that met a softirq is no stall yet; see CPUSTALL_SHORTEST_NS.
        proven = seen.astype("i8") - since.astype("i8") >= 150_000_000
        return _ages(np.where(proven, since, 0), now_ns)

    def _rows(self, kind: bytes, ages: _Ages, stays: np.ndarray) -> np.ndarray:
        overdue = np.flatnonzero(ages >= self._threshold_ns)
        if not len(overdue):
            return _NONE
        overdue = overdue[np.argsort(-ages[overdue])]
        rows = np.zeros(len(overdue), dtype=_ROW)
        rows["cpu"], rows["kind"], rows["age_ns"] = overdue, kind, ages[overdue]
        rows["pid"], rows["comm"] = stays["pid"][overdue], stays["comm"][overdue]
        if kind == b"softirq":
            rows["vector"] = self._cpus["softirq_vector"][overdue]
        rows["fed_ns"], rows["idle_ns"] = self._stalls["fed_ns"][overdue], self._cpus["idle_until_ns"][overdue]
        return rows


def _ages(since_ns: np.ndarray, now_ns: int) -> _Ages:
    """Return how long ago each time was, 0 for those that are 0 or later than ``now_ns``."""
    ages = np.where(since_ns > 0, now_ns - since_ns.astype("i8"), 0)
    return np.maximum(ages, 0)


class _Waits:
    """The words of ``runqueue_sets`` that are old, less those that outlived their wait.

    A task that is woken while it still runs leaves a word until its next wake-up: /proc tells, once per word.
    No wait is overdue before ``due_ns``, so that looking through the words every second is rarely needed.
    """

    def __init__(self, ways: np.ndarray) -> None:
        known = constants("runqueue")
        self._ways = ways
        self._time_bits = known["RUNQUEUE_TIME_BITS"]
        self._set_bits = known["RUNQUEUE_SET_BITS"]
        self._over: dict[int, int] = {}
        self.due_ns = 0

    def overdue(self, now_ns: int, threshold_ns: int, running: np.ndarray, untraced: np.ndarray) -> np.ndarray:
        """Return rows for tasks that have been runnable, and not running, for ``threshold_ns`` and more."""
        old = self._old(now_ns, threshold_ns)
        self._over = {at: word for _, at, word in old if self._over.get(at) == word}
        current = set(running.tolist())
        fresh = [each for each in old if each[1] not in self._over][:_LOOKUPS]
        rows = [self._judge(at, word, age_ns, current) for age_ns, at, word in fresh]
        if any(at not in self._over for _, at, _ in old):
            self.due_ns = 0
        return np.array([row for row in rows if row and not untraced[row[0]]], dtype=_ROW) if rows else _NONE

    def _old(self, now_ns: int, threshold_ns: int) -> list[tuple[int, int, int]]:
        """Return age, place and word of each old wait, oldest first. Nearly all words are 0: those aren't copied."""
        live = self._ways.reshape(-1)
        places = np.flatnonzero(live != 0)
        words = live[places]
        mask = np.uint64((1 << self._time_bits) - 1)
        ages = (np.uint64(now_ns) - words) & mask
        # The upper half is the future: noted since ``now_ns``. A word may have become 0 meanwhile.
        known = (ages <= mask >> np.uint64(1)) & (words != 0)
        old = np.flatnonzero(known & (ages >= threshold_ns))
        oldest_ns = int(ages[known & (ages < threshold_ns)].max(initial=0))
        # Intervals are not exact: what is not overdue by the end of the next one is not looked at there.
        self.due_ns = now_ns - oldest_ns + threshold_ns + threshold_ns // 20
        found = zip(ages[old].tolist(), places[old].tolist(), words[old].tolist(), strict=True)
        return sorted(found, reverse=True)

    def _judge(
        self, at: int, word: int, age_ns: int, running: set[int]
    ) -> tuple[int, bytes, int, int, bytes, int, int, int] | None:
        tag = (word >> self._time_bits) - 1
        pid = tag << self._set_bits | at // self._ways.shape[1]
        state, cpu, comm = _task(pid)
        if state != b"R":
            self._over[at] = word
        # Read again: it may have run meanwhile.
        if state != b"R" or pid in running or int(self._ways.reshape(-1)[at]) != word:
            return None
        return cpu, b"runnable", age_ns, pid, comm, 0, 0, 0


def _task(pid: int) -> tuple[bytes, int, bytes]:
    """Return a thread's state, CPU and name; a state of "" when it is gone. Source: proc(5), /proc/PID/stat."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return b"", 0, b""
    comm, _, rest = text.partition(b"(")[2].rpartition(b") ")
    fields = rest.split()
    return fields[0], int(fields[36]), comm
