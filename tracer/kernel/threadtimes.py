"""Threads' cumulated times out of the live rows of bpf/ledger.h: what each did between two moments."""

from __future__ import annotations

import os
import time

import numpy as np

from tracer.layouts import constants
from tracer.probe import SOFTIRQS

__all__ = ["PARTS", "SLEEPS", "ThreadTimes"]

_KNOWN = constants("ledger")
_OWN = (
    *("running", "waiting", "throttled", "reclaim", "compaction", "unknown"),
    *("stall_asleep", "wait_softirq", "wait_hardirq"),
)
#: What a thread may sleep for, in the order of their numbers in bpf/ledger.h.
SLEEPS = (
    *("sleep", "disk", "mutex", "rwsem", "rtlock", "uninterruptible", "stopped"),
    *("futex", "socket", "pipe", "poll", "timer", "child", "file", "device"),
)
_STALLS = {_KNOWN["LEDGER_RECLAIM"]: "reclaim", _KNOWN["LEDGER_COMPACTION"]: "compaction"}
#: The columns of a thread's times, in ns; "waits" is a count. Softirqs are "softirq", and each vector by its name.
PARTS = (*_OWN, "softirq", "hardirq", *SLEEPS, "waits", *SOFTIRQS)
_AT = {name: place for place, name in enumerate(PARTS)}

_ROW = np.dtype(
    [
        *(("pid", "u4"), ("tgid", "u4"), ("comm", "S16"), ("cgroup_id", "u8"), ("cpu", "u4")),
        # When it was first seen; when it ended, or the moment of the copy.
        *(("first_ns", "u8"), ("last_ns", "u8"), ("since_ns", "u8"), ("open_wait_ns", "u8")),
        ("parts", "i8", (len(PARTS),)),
    ]
)
_LOOKS = 50
#: A thread that has not changed for so long may be gone, unseen: it is looked up in /proc, a few at a time.
_OLD_NS = 10_000_000_000
_LOOKUPS = 32


class ThreadTimes:
    """Differences of ``tasks`` (live rows of ``struct ledger_task``); ``cpus`` are the live rows of ``ledger_cpu``.

    What goes on is added up to the moment of the copy, but for waits, whose cause is known when they end. ``proc`` says
    whether /proc shows the pids that programs see.
    """

    def __init__(self, tasks: np.ndarray, cpus: np.ndarray, *, proc: bool) -> None:
        self._live, self._cpus, self._proc = tasks, cpus, proc
        self._bytes = tasks.view(f"V{tasks.dtype.itemsize}")
        # By place: whose times they are (its first_ns), and the times.
        self._whose = np.zeros(len(tasks), "u8")
        self._before = np.zeros((len(tasks), len(PARTS)), "i8")
        self._looked = 0

    def take(self) -> tuple[int, np.ndarray]:
        """Return the moment (CLOCK_MONOTONIC ns) and a row per known thread: its times since the last call."""
        now_ns = time.monotonic_ns()
        places, rows = self._copy(np.flatnonzero(self._live["pid"]))
        parts = self._cumulated(places, rows, now_ns)
        same = self._whose[places] == rows["first_ns"]
        found = np.zeros(len(rows), _ROW)
        for name in ("pid", "tgid", "comm", "cgroup_id", "cpu", "first_ns", "since_ns"):
            found[name] = rows[name]
        found["parts"] = np.maximum(parts - np.where(same[:, None], self._before[places], 0), 0)
        dead = rows["state"] == _KNOWN["LEDGER_DEAD"]
        found["last_ns"] = np.where(dead, rows["since_ns"], now_ns)
        waiting = rows["state"] == _KNOWN["LEDGER_WAITING"]
        found["open_wait_ns"] = np.where(waiting, _open_ns(rows, now_ns), 0)
        self._whose[places], self._before[places] = rows["first_ns"], parts
        # What programs leave alone is free again when it has been told.
        self._live["pid"][places[dead]] = 0
        if self._proc:
            self._free_gone(places, rows, now_ns)
        return now_ns, found

    def _copy(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Copy rows, each as it was at one moment; what is written to all the time is left for the next call."""
        writes = self._live["writes"][places]
        rows = self._bytes[places].view(self._live.dtype)
        torn = np.flatnonzero((writes & 1) | (writes != self._live["writes"][places]))
        whole = np.ones(len(places), bool)
        for at in torn.tolist():
            whole[at] = self._copy_one(int(places[at]), rows, at)
        return places[whole], rows[whole]

    def _copy_one(self, place: int, rows: np.ndarray, at: int) -> bool:
        for _ in range(_LOOKS):
            writes = int(self._live["writes"][place])
            rows[at] = self._live[place]
            if not writes & 1 and writes == int(self._live["writes"][place]):
                return True
        return False

    def _cumulated(self, places: np.ndarray, rows: np.ndarray, now_ns: int) -> np.ndarray:
        """Return the times as they would be if what goes on ended now, shape (rows, parts)."""
        parts = np.zeros((len(rows), len(PARTS)), "i8")
        for name in _OWN:
            parts[:, _AT[name]] = rows[f"{name}_ns"]
        parts[:, _AT["softirq"]] = rows["softirqs_ns"]
        parts[:, _AT["hardirq"]] = rows["hardirq_ns"]
        parts[:, _AT["waits"]] = rows["waits"]
        parts[:, _AT["sleep"] : _AT["sleep"] + len(SLEEPS)] = rows["blocked_ns"][:, : len(SLEEPS)]
        parts[:, _AT[SOFTIRQS[0]] :] = rows["softirq_ns"]
        open_ns = _open_ns(rows, now_ns)
        interrupted = (rows["softirqs_ns"] + rows["hardirq_ns"] - rows["irq_base_ns"]).astype("i8")
        running = rows["state"] == _KNOWN["LEDGER_RUNNING"]
        # Another one runs there: when this one left was not shown.
        here = np.minimum(rows["cpu"], len(self._cpus) - 1)
        lost = running & (self._cpus["running"][here] != places + 1)
        column = _AT["sleep"] + rows["block"].astype("i8")
        column[running] = _AT["running"]
        for stall, name in _STALLS.items():
            column[rows["stall"] == stall] = _AT[name]
        column[lost] = _AT["unknown"]
        open_ns = np.where(running, np.maximum(open_ns - np.where(lost, 0, interrupted), 0), open_ns)
        asleep = (rows["state"] == _KNOWN["LEDGER_BLOCKED"]) & (rows["stall"] > 0)
        parts[asleep, _AT["stall_asleep"]] += open_ns[asleep]
        goes_on = np.flatnonzero(running | (rows["state"] == _KNOWN["LEDGER_BLOCKED"]))
        parts[goes_on, column[goes_on]] += open_ns[goes_on]
        return parts

    def _free_gone(self, places: np.ndarray, rows: np.ndarray, now_ns: int) -> None:
        old = np.flatnonzero(_open_ns(rows, now_ns) > _OLD_NS)
        if not len(old):
            return
        turn = np.take(old, range(self._looked, self._looked + min(_LOOKUPS, len(old))), mode="wrap")
        self._looked = (self._looked + len(turn)) % len(old)
        for at in turn.tolist():
            if not os.path.exists(f"/proc/{rows['tgid'][at]}/task/{rows['pid'][at]}"):
                self._live["pid"][places[at]] = 0


def _open_ns(rows: np.ndarray, now_ns: int) -> np.ndarray:
    open_ns: np.ndarray = np.maximum(now_ns - rows["since_ns"].astype("i8"), 0)
    return open_ns
