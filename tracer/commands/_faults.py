"""The faults that ``foreshock inject`` makes: harmless, bounded, each with what should be seen of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tracer import units
from tracer.errors import UnavailableError
from tracer.kernel.textfiles import number, text
from tracer.workloads import Places
from tracer.workloads._process import Workload
from tracer.workloads.brokendisk import BrokenDisk
from tracer.workloads.brokenfs import BrokenFs
from tracer.workloads.crowd import Crowd
from tracer.workloads.frozen import Frozen
from tracer.workloads.growth import Growth
from tracer.workloads.hog import Hog
from tracer.workloads.latesoftirqs import LateSoftirqs
from tracer.workloads.udpdrops import UdpDrops

__all__ = ["FAULTS", "MEMORY_SHARE", "Fault"]

#: Real-time tasks are throttled at 95 % of a second: a burst ends before that, and others get their turn.
_BURST, _REST = 0.4, 0.1
_CROWD = 8
#: Of the available memory, taken over the whole run: at this pace it would be gone in eight minutes, and
#: memory-exhaustion speaks below ten, once the slope has lasted for one.
MEMORY_SHARE = 0.15
_MEMORY_SECONDS = 75
#: From thirty seconds on a blocked task is an alert.
_BLOCKED_SECONDS = 45


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: as on the command line.
        does: what it does to the node, in one sentence.
        seen: what foreshock should say, and where.
        usual_s: how long, if nothing else is asked for: long enough for what should be seen.
        longest_s: it never lasts longer.
        start: returns the workload, not started yet, for so many seconds; raises UnavailableError.
    """

    name: str
    does: str
    seen: str
    usual_s: int
    longest_s: int
    start: Callable[[float, Places], Workload]


def _hog(seconds: float, where: Places) -> Workload:
    return Hog(where.busy, bursts=max(1, round(seconds / (_BURST + _REST))), burst=_BURST, rest=_REST)


def _growth(seconds: float, where: Places) -> Workload:
    available, free = _memory("MemAvailable"), _memory("MemFree")
    taken = int(available * MEMORY_SHARE)
    # The page cache is there for the work that runs here.
    if taken > free / 2:
        raise UnavailableError(
            f"memory-slope would take {units.memory(taken)}, and {units.memory(free)} are free.",
            hint="another fault, or a node with more free memory",
        )
    return Growth(seconds, bytes_per_second=int(taken / seconds))


def _memory(line: str) -> int:
    found = re.search(rf"^{line}: +(\d+) kB$", text("/proc/meminfo") or "", re.M)
    return int(found[1]) << 10 if found else 0


def _frozen(seconds: float, where: Places) -> Workload:
    from tracer.kernel import scratchfs

    lacking = scratchfs.lacking()
    if lacking:
        raise UnavailableError(f"d-state needs a loop-mounted ext4 of its own: {lacking}.", hint="another fault")
    panics, timeout = (number(f"/proc/sys/kernel/{name}") for name in ("hung_task_panic", "hung_task_timeout_secs"))
    if panics and timeout and seconds > timeout / 2:
        raise UnavailableError(
            f"kernel.hung_task_panic is on: {units.duration(seconds * 1e9)} in D state is too near to its {timeout} s.",
            hint=f"foreshock inject d-state --for {timeout // 4}s",
        )
    return Frozen(seconds)


def _broken_fs(seconds: float, where: Places) -> Workload:
    from tracer.kernel import scratchfs

    lacking = scratchfs.lacking()
    if lacking:
        raise UnavailableError(f"fs-error needs a loop-mounted ext4 of its own: {lacking}.", hint="another fault")
    return BrokenFs(seconds)


def _broken_disk(seconds: float, where: Places) -> Workload:
    from tracer.kernel import loopdisk

    lacking = loopdisk.lacking()
    if lacking:
        raise UnavailableError(f"kernel-log needs a loop device: {lacking}.", hint="another fault")
    return BrokenDisk(seconds)


FAULTS = {
    fault.name: fault
    for fault in (
        Fault(
            "fifo-hog",
            f"a real-time task takes one CPU for {_BURST * 1e3:.0f} ms at a time, with {_REST * 1e3:.0f} ms in between",
            "summary and top: long waits for that CPU, held by hog",
            10,
            60,
            _hog,
        ),
        Fault(
            "runqueue-crowd",
            f"{_CROWD} ordinary tasks compute on one CPU",
            "summary and top: waits of several milliseconds on that CPU, held by crowd",
            10,
            300,
            lambda seconds, where: Crowd(where.busy, seconds, tasks=_CROWD),
        ),
        Fault(
            "softirq-delay",
            "a task keeps softirqs off on one CPU, 10 to 40 ms at a time, half of the time",
            "summary and top: late softirqs on that CPU, held up by latesoftirqs",
            10,
            60,
            lambda seconds, where: LateSoftirqs(where.busy, seconds),
        ),
        Fault(
            "udp-drop",
            "2 000 datagrams a second over loopback to a socket that nobody reads",
            "the kernel's own count: nstat -az UdpRcvbufErrors",
            10,
            60,
            lambda seconds, where: UdpDrops(seconds),
        ),
        Fault(
            "memory-slope",
            f"a process takes {units.percent(MEMORY_SHARE)} of the available memory, steadily, and gives it back",
            "agent: warning memory-exhaustion after about a minute, of the cgroup that it is started in",
            _MEMORY_SECONDS,
            90,
            _growth,
        ),
        Fault(
            "d-state",
            "a task writes to a frozen file system of its own (ext4 on a loop device, in memory), and waits in D state",
            "agent: warning hung-task after about 30 s, of a task called stuck",
            _BLOCKED_SECONDS,
            100,
            _frozen,
        ),
        Fault(
            "kernel-log",
            "the kernel logs an I/O error a second: of a loop device of its own that has lost its file",
            "agent: warning storage-error of that loop device after a second or two; dmesg",
            10,
            60,
            _broken_disk,
        ),
        Fault(
            "fs-error",
            "the kernel reports an error a second of a file system of its own (ext4 on a loop device, in memory)",
            "agent: PAGE filesystem-error of that loop device after a second or two: it tries the pager",
            10,
            60,
            _broken_fs,
        ),
    )
}
