"""What a process does that forks others of itself, and what they do first: share memory, and nothing else."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Collection

from tracer.kernel.memlock import give_back_memory
from tracer.kernel.processes import die_with

__all__ = ["ENDING", "close_all_but", "ends", "ready_memory", "settle_down"]

#: They reach the whole group (Ctrl-C, timeout(1), a service that stops): the process that forked ends, and that ends
#: the others. They are to be blocked while it forks: until a child ignores them it would answer as its parent does.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ready_memory() -> None:
    """Leave nothing to copy: what the heap has free would be in every child, what is collected would be written to."""
    gc.collect()
    give_back_memory()
    gc.freeze()


def settle_down(parent: int) -> None:
    """Be a child: killed when ``parent`` ends, deaf to ``ENDING``, which were blocked, and without collections."""
    signal.set_wakeup_fd(-1)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
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
    """Reap a child that ends within so long; return whether it did."""
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
