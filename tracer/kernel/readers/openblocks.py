"""Blocks that go on at the end of a recording: those whose beginning was seen, and those from before it.

The first are in ``offcpu_tasks`` with their stacks. A task that is asleep and not in there has been so since before the
programs came; /proc says in what: in D its whole stack, else the innermost function (wchan), which tells idle waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.cpus import in_host_pids
from tracer.kernel.hungtasks import innermost, kernel_frames, stat_fields, task_status, threads
from tracer.kernel.readers.blocked import BlockedStacks
from tracer.kernel.session import Session
from tracer.kernel.symbols.dictionary import Part
from tracer.kernel.symbols.kallsyms import KERNEL
from tracer.layouts import constants, layout

__all__ = ["OpenBlocks", "Since"]

_SECONDS = 0.5
#: Stacks of tasks in D, about 100 µs each.
_STACKS = 32
#: Source: include/linux/sched.h; by the letters of /proc/PID/stat.
_STATES = {b"S": 0x1, b"D": 0x2, b"T": 0x4, b"t": 0x8, b"P": 0x40, b"I": 0x402}
_KTHREAD = 0x00200000  # PF_KTHREAD


@dataclass(frozen=True)
class Since:
    """Blocks from before the recording: keys and counts as the programs would have made them, and kernel stacks."""

    keys: np.ndarray
    values: np.ndarray
    parts: list[Part]
    left_out: int


class OpenBlocks:
    """Makes keys and counts of blocks that have not ended, marked as such."""

    def __init__(self, session: Session, blocked: BlockedStacks, least_ns: int) -> None:
        self._blocked, self._least_ns = blocked, least_ns
        self._key, self._value = layout("offcpu", "offcpu_key"), layout("offcpu", "offcpu_count")
        known = constants("offcpu")
        self._still, self._all_along = known["OFFCPU_STILL"], known["OFFCPU_ALL_ALONG"]
        self._stack: Callable[[int], bytes | None] = session.stack
        self._group = session.options.constants.get("FILTER_CGROUP")
        self._process = session.options.constants.get("FILTER_TGID")
        self._cpus = session.options.cpus
        self._able = in_host_pids()

    def noted(self, now_ns: int) -> tuple[np.ndarray, np.ndarray]:
        """Return keys and counts of the blocks that go on and that programs saw begin, but for short ones."""
        tids, tasks = self._blocked.tasks
        ages = now_ns - tasks["blocked_ns"].astype("i8")
        going = (tasks["blocked_ns"] > 0) & (ages >= self._least_ns)
        tids, tasks, ages = tids[going], tasks[going], ages[going]
        keys, values = np.zeros(len(tids), self._key), np.zeros(len(tids), self._value)
        for name in ("cpu", "state", "kernel_stack", "user_stack", "generation"):
            keys[name] = tasks[name]
        keys["tid"], keys["waker"]["kind"] = tids, self._still
        values["weight"], values["count"], values["first_ns"] = ages, 1, tasks["blocked_ns"]
        whole = np.zeros(len(tids), bool)
        for place, tid in enumerate(tids.tolist() if self._able else ()):
            status = task_status(tid)
            if status and status.state != b"Z":
                keys["tgid"][place], keys["comm"][place], whole[place] = status.tgid, status.comm, True
        return keys[whole], values[whole]

    def since_before(self, began_ns: int, now_ns: int) -> Since:
        """Return the blocks of tasks that are asleep and of which programs have noted nothing.

        Kernel threads that are not in D have nothing to do, and are not looked at. ``left_out`` are those there
        was no time for.
        """
        keys: list[tuple[int, int, int, int]] = []
        comms: list[bytes] = []
        parts: list[Part] = []
        left_out, stacks, until = 0, _STACKS, time.monotonic() + _SECONDS
        for asleep in self._asleep(until) if self._able else ():
            status = task_status(asleep.tid) if time.monotonic() < until else None
            if not status:
                left_out += 1
                continue
            if status.state != asleep.state or not self._wanted(status.tgid):
                continue
            taken = self._stack(asleep.tid) if asleep.state == b"D" and stacks else None
            stacks -= taken is not None
            # None of a task that shows itself to nobody; its time counts nevertheless.
            frames = kernel_frames(taken if taken is not None else innermost(asleep.tid))
            keys.append((asleep.cpu, status.tgid, asleep.tid, _STATES[asleep.state]))
            comms.append(status.comm)
            parts.append(Part(b"k", [(module or KERNEL, name) for name, module in frames]))
        return Since(*self._made(keys, comms, now_ns - began_ns), parts, left_out)

    def _made(
        self, found: list[tuple[int, int, int, int]], comms: list[bytes], age_ns: int
    ) -> tuple[np.ndarray, np.ndarray]:
        keys, values = np.zeros(len(found), self._key), np.zeros(len(found), self._value)
        if found:
            keys["cpu"], keys["tgid"], keys["tid"], keys["state"] = np.array(found, "u4").T
        keys["kernel_stack"] = keys["user_stack"] = -1
        keys["waker"]["kind"] = self._all_along
        keys["comm"] = comms
        values["weight"], values["count"] = age_ns, 1
        return keys, values

    def _asleep(self, until: float) -> Iterator[_Asleep]:
        """Yield the threads in a sleep that began unseen, those in D first."""
        noted, others = set(self._blocked.tasks[0].tolist()), []
        for tid in threads():
            if tid in noted:
                continue
            fields = stat_fields(tid) if time.monotonic() < until else []
            # Of fields 3, 9 and 39: state, flags, processor; source: proc(5).
            if len(fields) < 37 or fields[0] not in _STATES:
                continue
            one = _Asleep(tid, fields[0], int(fields[36]))
            if self._cpus is not None and one.cpu not in self._cpus:
                continue
            if one.state == b"D":
                yield one
            elif not int(fields[6]) & _KTHREAD:
                others.append(one)
        yield from others

    def _wanted(self, pid: int) -> bool:
        if self._process is not None and pid != self._process:
            return False
        if self._group is None:
            return True
        groups = CgroupNames()
        return groups.id_of(groups.cgroup_of(pid).decode(errors="surrogateescape")) == self._group


@dataclass(frozen=True)
class _Asleep:
    tid: int
    state: bytes
    cpu: int
