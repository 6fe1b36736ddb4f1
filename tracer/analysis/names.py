"""How things of a node are called in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["VECTORS", "cpu_list", "is_irq_vector", "task", "vector"]

# enum of include/linux/interrupt.h; the order has not changed since 2.6.
VECTORS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
FIRST_VECTOR_LINE = 1_000_000  # hardirq numbers from here on are CPU vectors, not interrupt lines
_PLAIN = re.compile(r"[\w./:@+#~-]+", re.ASCII)


def vector(number: int) -> str:
    """Return a softirq vector's name: ``NET_RX``."""
    return VECTORS[number] if 0 <= number < len(VECTORS) else f"vector {number}"


def is_irq_vector(irq: int) -> bool:
    """Return whether a hardirq row is a CPU vector (timer, IPI) rather than a device's line."""
    return irq >= FIRST_VECTOR_LINE


def task(comm: str, pid: int) -> str:
    """Return ``comm[pid]``, quoting a name that could be read as part of the sentence."""
    if pid == 0:
        return "the idle task"
    name = comm if _PLAIN.fullmatch(comm) else f'"{comm}"'
    return f"{name}[{pid}]" if comm else f"pid {pid}"


def cpu_list(cpus: Iterable[int]) -> str:
    """Return CPU numbers as the kernel lists them: ``CPU 1``, ``CPUs 0-3,8``."""
    ordered = sorted(set(cpus))
    runs: list[list[int]] = []
    for cpu in ordered:
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"CPU{'s' if len(ordered) != 1 else ''} {','.join(parts)}"
