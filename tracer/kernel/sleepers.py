"""Rows of the ledger for processes that are to be told and that programs have not seen: asleep since before the start.

A program gives a thread its row when it wakes or goes to sleep. A rank that hangs does neither; its first thread gets
one here, as if it had gone to sleep now. From then on the row is the programs'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

import numpy as np

from tracer.kernel.cgroups import CgroupNames
from tracer.kernel.hungtasks import TaskStatus, kernel_frames, task_status
from tracer.layouts import constants

__all__ = ["Sleepers", "kind_of"]

_KNOWN = constants("ledger")
#: At most so many per interval: each is asked of /proc, and its stack of the helper.
_LOOKS = 8
#: Functions of the kernel that threads sleep in, by what they wait for: of a stack the innermost that is known decides.
#: Sources: kernel/futex, fs/pipe.c, net/socket.c, fs/select.c, fs/eventpoll.c, kernel/time/hrtimer.c, kernel/exit.c,
#: fs/locks.c, fs/fuse, fs/nfs, kernel/locking.
_FUNCTIONS: Final = tuple(
    (re.compile(pattern), _KNOWN[f"LEDGER_{kind}"])
    for pattern, kind in (
        (rb"io_schedule", "DISK"),
        (rb"__mutex_lock|mutex_lock", "MUTEX"),
        (rb"rwsem_down|down_read|down_write|percpu_rwsem_wait", "RWSEM"),
        (rb"rt_mutex|rtlock", "RTLOCK"),
        (rb"do_poll|do_sys_poll|do_select|ep_poll|do_epoll_wait|eventfd_read|io_cqring_wait", "POLL"),
        (rb"(__)?futex_|do_futex", "FUTEX"),
        (rb"(anon_)?pipe_|fifo_open", "PIPE"),
        (rb"(__)?sk_|sock_|__skb_|unix_|inet_|tcp_|__sys_(recv|send|accept|connect)", "SOCKET"),
        (rb"hrtimer_nanosleep|do_nanosleep", "TIMER"),
        (rb"do_wait$|kernel_wait|kernel_waitid", "CHILD"),
        (rb"fuse_|nfs|rpc_|locks_lock_|fcntl_setlk", "FILE"),
        (rb"tty_|n_tty_", "DEVICE"),
    )
)
_STOPPED, _UNINTERRUPTIBLE, _AWAY = (b"T", b"t"), b"D", (b"R", b"Z", b"X")


class Sleepers:
    """Writes to ``tasks``, the live rows of ``ledger_task``; ``stack`` returns what ``kernel_stack`` does, or None.

    ``group`` is the id of the only cgroup that is traced, 0 for all.
    """

    def __init__(
        self, tasks: np.ndarray, cgroups: CgroupNames, stack: Callable[[int], bytes | None], group: int = 0
    ) -> None:
        self._tasks, self._cgroups, self._stack, self._group = tasks, cgroups, stack, group
        self._given: list[tuple[int, int]] = []

    def give(self, wanted: Collection[int], seen: Collection[int], now_ns: int) -> None:
        """Give the first threads of processes rows, a few at a time, but those that have been ``seen``."""
        self._take_back()
        for pid in sorted(set(wanted).difference(seen))[:_LOOKS]:
            status = task_status(pid)
            # Who runs, or waits to, is seen at once; a first thread that has ended never.
            if status is None or status.tgid != pid or status.state in _AWAY:
                continue
            group = self._cgroups.id_of(self._cgroups.cgroup_of(pid).decode(errors="surrogateescape"))
            if not self._group or group == self._group:
                self._claim(pid, status, group, now_ns)

    def _claim(self, pid: int, status: TaskStatus, group: int, now_ns: int) -> None:
        first = (pid & (_KNOWN["LEDGER_SETS"] - 1)) * _KNOWN["LEDGER_WAYS"]
        block = kind_of(status.state, self._stack(pid) or b"")
        ways = range(first, first + _KNOWN["LEDGER_WAYS"])
        if any(self._tasks["pid"][way] == pid for way in ways):
            return
        for way in ways:
            row = self._tasks[way : way + 1]
            if row["pid"][0]:
                continue
            blank = np.zeros(1, self._tasks.dtype)
            blank["tgid"], blank["state"], blank["block"] = pid, _KNOWN["LEDGER_BLOCKED"], block
            blank["comm"], blank["cgroup_id"], blank["first_ns"], blank["since_ns"] = status.comm, group, now_ns, now_ns
            # Whole before it has a pid: until then it is no one's.
            row[:] = blank
            row["pid"] = pid
            self._given.append((pid, way))
            return

    def _take_back(self) -> None:
        """Take back rows of threads that woke while they were given one, and had one of a program."""
        for pid, way in self._given:
            first = way - way % _KNOWN["LEDGER_WAYS"]
            ways = range(first, first + _KNOWN["LEDGER_WAYS"])
            if self._tasks["pid"][way] == pid and sum(self._tasks["pid"][one] == pid for one in ways) > 1:
                self._tasks["pid"][way] = 0
        self._given = []


def kind_of(state: bytes, stack: bytes) -> int:
    """Return what a thread sleeps for, as ``LEDGER_…`` has it, by its state and its stack in the kernel."""
    if state in _STOPPED:
        return _KNOWN["LEDGER_STOPPED"]
    for function, _ in kernel_frames(stack):
        for pattern, kind in _FUNCTIONS:
            if pattern.match(function):
                return kind
    return _KNOWN["LEDGER_UNINTERRUPTIBLE" if state == _UNINTERRUPTIBLE else "LEDGER_SLEEP"]
