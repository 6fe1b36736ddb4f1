"""The few things that take privileges once everything is attached. ``Helper`` has another process do them."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping

from tracer.kernel import jobs
from tracer.kernel.hungtasks import kernel_stack
from tracer.kernel.loader import syscalls
from tracer.kernel.patience import Patience

__all__ = ["CAPABILITIES", "Deeds"]

#: Clocks: perfmon. The accounting and /proc/PID/stack: sys_admin; the latter, and environ, of whomever: the others.
CAPABILITIES = ("perfmon", "sys_admin", "sys_ptrace", "dac_read_search")

_MOST_PID = 1 << 22
_ENVIRON_SECONDS = 0.05


class Deeds:
    """Does them in this process. All raise OSError, EINVAL for arguments that can't be meant.

    ``clocks`` are programs by how often they run, per second; ``cpus`` those that may have one.
    """

    def __init__(self, clocks: Mapping[int, int], cpus: Collection[int]) -> None:
        self.programs = tuple(clocks.values())
        self.cpus = frozenset(cpus)
        self._clocks = dict(clocks)
        self._asked_for = 0
        self._environ = Patience(self._read_environ, _ENVIRON_SECONDS)

    def clocks(self, cpu: int) -> list[int]:
        """Attach every clock's program to ``cpu``; return the perf events, which are the caller's."""
        if cpu not in self.cpus:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        events: list[int] = []
        try:
            for hz, program in self._clocks.items():
                events.append(syscalls.attach_clock(program, cpu, hz))
        except OSError:
            for event in events:
                os.close(event)
            raise
        return events

    def accounting(self) -> int:
        """Switch the kernel's accounting of BPF run time on, for as long as the returned descriptor is open."""
        return syscalls.enable_stats()

    def stack(self, tid: int) -> bytes:
        """Return what /proc says of where a thread sleeps, see ``kernel_stack``. It may block."""
        if not 0 < tid <= _MOST_PID:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return kernel_stack(tid)

    def variables(self, pid: int) -> bytes:
        """Return what ``jobs.chosen`` does of a process's environment, b"" of what has none, or shows it to nobody.

        A task that holds its own memory's lock, or has its pages fetched by somebody, would be waited for: not for
        long, TimeoutError then; and while it goes on, at once.
        """
        if not 0 < pid <= _MOST_PID:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._asked_for = pid
        answer = self._environ.ask()
        if answer is None:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return answer

    def _read_environ(self) -> bytes:
        try:
            fd = os.open(f"/proc/{self._asked_for}/environ", os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return b""  # it has ended, or has more privileges than this one
        try:
            return jobs.chosen(os.read(fd, jobs.MOST_BYTES))
        except ProcessLookupError:
            return b""
        finally:
            os.close(fd)

    def trouble(self) -> str:
        """Return why they can't be done any more: never."""
        return ""

    def close(self) -> None:
        """End the thread that reads environments, if there is one."""
        self._environ.close()
