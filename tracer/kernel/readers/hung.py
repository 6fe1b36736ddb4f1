"""Tasks that have been in uninterruptible sleep for long, from the words of bpf/hung.h and /proc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.cpus import in_host_pids
from tracer.kernel.hungtasks import Detector, TaskStacks, blocked_tasks, task_status
from tracer.kernel.kept import Kept
from tracer.kernel.session import Session
from tracer.layouts import constants
from tracer.probe import Probe

__all__ = ["Reader"]

_BLOCKED = np.dtype(
    [
        ("pid", "u4"),
        ("tgid", "u4"),
        ("comm", "S16"),
        ("cgroup", "S96"),
        ("since_ns", "u8"),
        ("age_ns", "u8"),
        ("counted", "S8"),
        ("stack", "S512"),
    ]
)
_DETECTOR = np.dtype([("scanned_ns", "u8"), ("detected", "u8")])
#: Threads looked up in /proc per interval, about 50 µs each.
_LOOKUPS = 32
_SEED_SECONDS = 0.003

Read = dict[str, tuple[np.ndarray, Mapping[str, int]]]


class _Sleep(NamedTuple):
    """``word`` is the one noted at ``place``; -1 and 0 of a task that was asleep before the programs came."""

    since_ns: int
    pid: int
    place: int
    word: int


class Reader:
    """Fills ``hung.blocked``, oldest first, and ``hung.detector``."""

    def __init__(self, session: Session, probe: Probe) -> None:
        self._longest_ns = {**probe.settings, **session.options.constants}["HUNG_LISTED_NS"]
        self._words = _Words(session.array("hung_sets")["ways"])
        self._cgroups = CgroupNames()
        # In another pid namespace the numbers of the programs name other tasks, or none.
        self._able = in_host_pids()
        self._seeding = blocked_tasks(_SEED_SECONDS) if self._able else iter(())
        self._seeds: dict[int, int] = {}
        self._over: dict[int, int] = {}
        self._oldest_ns = 0
        self._timeout = Kept("/proc/sys/kernel/hung_task_timeout_secs")
        self._detector = Detector()
        self._stacks = TaskStacks(session.stack)
        self._began_ns = 0

    def read(self, now_ns: int) -> Read:
        """Return the tables; ``untold`` counts those beyond the limit, ``stackless`` stacks without an answer.

        ``foreign`` says that pids have no names.
        """
        self._began_ns = self._began_ns or now_ns
        sleeps = self._sleeps(now_ns) if self._able else []
        self._stacks.begin({(sleep.pid, sleep.since_ns) for sleep in sleeps[:_LOOKUPS]})
        rows = [row for row in (self._row(sleep, now_ns) for sleep in sleeps[:_LOOKUPS]) if row]
        untold = max(0, len(sleeps) - _LOOKUPS)
        losses = {"untold": untold, "stackless": self._stacks.missing, "foreign": int(not self._able)}
        detector = np.array([self._detector.read(now_ns)], dtype=_DETECTOR)
        return {"blocked": (np.array(rows, dtype=_BLOCKED), losses), "detector": (detector, {})}

    def close(self) -> None:
        self._words.close()
        self._timeout.close()
        self._detector.close()

    def _sleeps(self, now_ns: int) -> list[_Sleep]:
        """Return the sleeps that are old enough to be listed, oldest first."""
        self._seed()
        listed_ns = self._listed_ns()
        # A look reads all words. Until the oldest sleep of the last look is old enough, none is.
        if not self._seeds and now_ns - self._oldest_ns < listed_ns:
            return []
        noted = self._words.sleeps(now_ns)
        self._over = {sleep.place: sleep.word for sleep in noted if self._over.get(sleep.place) == sleep.word}
        # A task that has a word has slept again since: that is another sleep.
        for sleep in noted:
            self._seeds.pop(sleep.pid, None)
        seeded = [_Sleep(self._began_ns, tid, -1, 0) for tid in self._seeds]
        sleeps = sorted(sleep for sleep in (*noted, *seeded) if sleep.place not in self._over)
        self._oldest_ns = sleeps[0].since_ns if sleeps else now_ns
        return [sleep for sleep in sleeps if now_ns - sleep.since_ns >= listed_ns]

    def _seed(self) -> None:
        """Go on looking for tasks that have slept since before the programs saw them."""
        for tid in next(self._seeding, ()):
            status = task_status(tid)
            if status and status.state == b"D":
                self._seeds[tid] = status.switches

    def _listed_ns(self) -> int:
        """Return the age from which on sleeps are listed: less where the kernel's own timeout is short."""
        timeout_s = self._timeout.number() or 0
        return min(self._longest_ns, timeout_s * 250_000_000) if timeout_s else self._longest_ns

    def _row(self, sleep: _Sleep, now_ns: int) -> tuple[int, int, bytes, bytes, int, int, bytes, bytes] | None:
        since_ns, pid, place, word = sleep
        status = task_status(pid)
        asleep = status is not None and status.state == b"D"
        if place < 0 and not (status and asleep and status.switches == self._seeds[pid]):
            del self._seeds[pid]
            return None
        if not status or not asleep:
            # The wake-up came before the word was written, or was not seen: it isn't looked at again.
            self._over[place] = word
            return None
        counted = self._words.counted(word) if word else b"unknown"
        cgroup, stack = self._cgroups.cgroup_of(pid), self._stacks.of(pid, since_ns)
        return pid, status.tgid, status.comm, cgroup, since_ns, now_ns - since_ns, counted, stack


class _Words:
    """The words of ``hung_sets``, as bpf/hung.h describes them."""

    def __init__(self, ways: np.ndarray) -> None:
        known = constants("hung")
        self._live = ways.reshape(-1)
        self._per_set = ways.shape[1]
        self._set_bits, self._tag_bits = known["HUNG_SET_BITS"], known["HUNG_TAG_BITS"]
        self._time_bits, self._killable_bit = known["HUNG_TIME_BITS"], known["HUNG_KILLABLE_BIT"]

    def sleeps(self, now_ns: int) -> list[_Sleep]:
        """Return every sleep that goes on. Nearly all words are 0: those aren't copied."""
        places = np.flatnonzero(self._live != 0)
        words = self._live[places].tolist()
        return [self._sleep(place, word, now_ns) for place, word in zip(places.tolist(), words, strict=True) if word]

    def counted(self, word: int) -> bytes:
        """Return whether the kernel's detector counts such a sleep."""
        return b"no" if word >> self._killable_bit & 1 else b"yes"

    def close(self) -> None:
        self._live = self._live[:0].copy()

    def _sleep(self, place: int, word: int, now_ns: int) -> _Sleep:
        age_ns = (now_ns - word) & ((1 << self._time_bits) - 1)
        # The upper half is the future: noted since ``now_ns``.
        since_ns = now_ns if age_ns >> (self._time_bits - 1) else now_ns - age_ns
        pid = ((word >> self._tag_bits) - 1) << self._set_bits | place // self._per_set
        return _Sleep(since_ns, pid, place, word)
