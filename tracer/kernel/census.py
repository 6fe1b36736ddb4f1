"""Which processes use the CPUs, and which are there: found out by their clocks, a microsecond each."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from tracer.units import SECOND

__all__ = ["Census", "Process", "cgroup_paths", "process"]

#: Processes looked at in one turn: beyond, those with the highest numbers are left out.
MOST = 32768
_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of include/linux/sched.h


@dataclass(frozen=True)
class Process:
    """A process: the same number may be another one's later, but not with the same beginning.

    ``began_ns`` is of CLOCK_MONOTONIC, to a hundredth of a second.
    """

    pid: int
    comm: bytes
    began_ticks: int
    began_ns: int


class Census:
    """All processes, and those that have used ``least_ns`` of CPU time, all their threads together.

    Attributes:
        clocks: CPU time in ns by pid, as of the last turn.
        users: those that have used so much.
        reused: numbers whose time went back since the turn before: they are another process's now.
    """

    def __init__(self, least_ns: int) -> None:
        self._least_ns = least_ns
        self.clocks: dict[int, int] = {}
        self.users: set[int] = set()
        self.reused: set[int] = set()

    def turn(self) -> list[int]:
        """Look at all processes; return those that have become users since the last turn, the greatest first."""
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[:MOST]
        before, users = self.clocks, self.users
        found = {pid: cpu_ns(pid) for pid in pids}
        self.clocks = {pid: used for pid, used in found.items() if used is not None}
        self.users = {pid for pid, used in self.clocks.items() if used >= self._least_ns}
        self.reused = {pid for pid, used in self.clocks.items() if used < before.get(pid, 0)}
        return sorted(self.users - (users - self.reused), key=lambda pid: -self.clocks[pid])


def cpu_ns(pid: int) -> int | None:
    """Return the CPU time of all threads of a process so far; None when it is gone."""
    try:
        # Source: include/linux/posix-timers_types.h, make_process_cpuclock() with CPUCLOCK_SCHED.
        return time.clock_gettime_ns(~pid << 3 | 2)
    except OSError:
        return None


def process(pid: int) -> Process | None:
    """Return what /proc/PID/stat says of a process; None when it is gone, or one of the kernel's threads."""
    head, _, rest = _read(f"/proc/{pid}/stat", 1024).rpartition(b") ")
    try:
        # The 9th and the 22nd, of which two are in the head. Source: proc_pid_stat(5).
        fields = rest.split(None, 20)
        flags, ticks = int(fields[6]), int(fields[19])
    except (IndexError, ValueError):
        return None
    if flags & _KERNEL_THREAD:
        return None
    asleep_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    return Process(pid, head.partition(b"(")[2], ticks, ticks * SECOND // _TICKS - asleep_ns)


def cgroup_paths(pid: int) -> list[bytes]:
    """Return the paths of a process's cgroups, in every hierarchy; none when it is gone."""
    return [line.split(b":", 2)[2] for line in _read(f"/proc/{pid}/cgroup", 65536).splitlines() if line.count(b":") > 1]


def _read(path: str, limit: int) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(limit) or b""
    except OSError:
        return b""
