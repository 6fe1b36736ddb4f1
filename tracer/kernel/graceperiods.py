"""How long RCU's grace periods take, found out by waiting for one now and then.

membarrier(MEMBARRIER_CMD_GLOBAL) is synchronize_rcu() by another name: it returns when a grace period that began
after the call has ended, so it waits for up to two. Source: kernel/sched/membarrier.c.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import threading
import time
from queue import SimpleQueue

from tracer.kernel import cpus
from tracer.kernel.processes import own_name
from tracer.kernel.textfiles import number

__all__ = ["GracePeriods", "unable"]

_MEMBARRIER = {"x86_64": 324, "aarch64": 283, "riscv64": 283, "ppc64le": 365, "s390x": 356}.get(platform.machine(), -1)
_QUERY, _GLOBAL = 0, 1
NAME = "foreshock-rcu"
_STACK_BYTES = 256 << 10  # an agent with locked memory pays for all of it
_CLOSE_SECONDS = 0.2

_libc = ctypes.CDLL(None, use_errno=True)


def unable() -> str:
    """Return why grace periods can't be waited for on this node; "" if they can."""
    commands = _libc.syscall(_MEMBARRIER, _QUERY, 0, 0)
    if commands < 0:
        return f"membarrier(2) is refused: {os.strerror(ctypes.get_errno() or errno.ENOSYS)}"
    if not commands & _GLOBAL:
        return "membarrier(2) waits for no grace period where CPUs are nohz_full"
    if len(cpus.online()) < 2:
        return "membarrier(2) waits for no grace period where only one CPU is online"
    return ""


class GracePeriods:
    """A thread that waits for a grace period every ``seconds``, but not while the kernel would panic over it.

    The wait is uninterruptible: with kernel.hung_task_panic set, a stall that lasts would make this thread the hung
    task. A stall that began before keeps the thread waiting, whatever is set meanwhile.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._stop = threading.Event()
        self.forbidden = False
        self.begun_ns = 0
        """When the wait that goes on began; 0 if none does."""
        before = threading.stack_size(_STACK_BYTES)
        try:
            self._thread = threading.Thread(target=self._run, name="grace periods", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(before)

    def take(self) -> list[int]:
        """Return how long the waits took that ended since the last call, in ns."""
        # This is the queue's only reader: what is in it stays there.
        return [self._ended.get_nowait() for _ in range(self._ended.qsize())]

    def close(self) -> None:
        """End the thread; one that is stuck ends when the kernel lets it go."""
        self._stop.set()
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        own_name(NAME)
        while not self._stop.wait(self._seconds):
            self.forbidden = bool(number("/proc/sys/kernel/hung_task_panic"))
            if self.forbidden:
                continue
            begun_ns = time.monotonic_ns()
            self.begun_ns = begun_ns
            refused = _libc.syscall(_MEMBARRIER, _GLOBAL, 0, 0) < 0
            self.begun_ns = 0
            if not refused:
                self._ended.put(time.monotonic_ns() - begun_ns)
