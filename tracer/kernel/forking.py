"""What a process does that forks others of itself, and what they do first: share memory, and nothing else."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from typing import NoReturn

from tracer.kernel.memlock import give_back_memory
from tracer.kernel.processes import die_with

__all__ = ["close_all_but", "end", "ends", "fork", "ready_memory"]

#: They reach the whole group (Ctrl-C, timeout(1), a service that stops): the process that forked ends, and that ends
#: the others. They are to be blocked while it forks: until a child ignores them it would answer as its parent does.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ready_memory() -> None:
    """Leave nothing to copy: what the heap has free would be in every child, what is collected would be written to."""
    gc.collect()
    give_back_memory()
    gc.freeze()


def fork(name: str, work: Callable[[], None]) -> int:
    """Have a process of its own do ``work`` and end; return its pid. Raises OSError.

    It is killed when this one ends. What goes wrong in it is said on standard error, as ``name``'s.
    """
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        pid = os.fork()
        if not pid:
            _live(name, work, parent)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _live(name: str, work: Callable[[], None], parent: int) -> NoReturn:
    code = 1
    try:
        _settle_down(parent)
        work()
        code = 0
    except BaseException as error:
        # Straight to the descriptor: buffers may hold what the parent had not written yet.
        os.write(2, f"{name}: {type(error).__name__}: {error}\n".encode(errors="replace"))
        if os.environ.get("FORESHOCK_DEBUG") == "1":
            sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)


def _settle_down(parent: int) -> None:
    """Be a child: killed when ``parent`` ends, deaf to ``_ENDING``, which were blocked, and without collections."""
    signal.set_wakeup_fd(-1)
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    die_with(parent)
    gc.disable()


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor of this process but the first three and those ``kept``."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # the one that lists them


def ends(pid: int, seconds: float) -> bool:
    """Reap a child that ends within so long; return whether it did. Raises ValueError for a group (0 and less)."""
    if pid <= 0:
        raise ValueError(f"no process has pid {pid}")
    until = time.monotonic() + seconds
    while True:
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return True
        except ChildProcessError:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.002)


def end(pid: int, seconds: float) -> None:
    """Wait so long for a child's end, then kill it; one that is stuck in the kernel is left to the kernel."""
    if not ends(pid, seconds):
        os.kill(pid, signal.SIGKILL)
        ends(pid, 0.1)
