"""How things of a node are called in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tracer.analysis import thresholds
from tracer.layouts import constants
from tracer.probe import SOFTIRQS

__all__ = [
    "VECTORS",
    "budget_class",
    "cpu_list",
    "irq_vector",
    "is_irq_vector",
    "listed",
    "own_task",
    "quoted",
    "scheduling",
    "task",
    "vector",
]

VECTORS = SOFTIRQS
_MAX_RT_PRIO = 100  # of include/linux/sched/prio.h; what people set (chrt) counts the other way round
_PLAIN = re.compile(r"[\w./:@+#~-]+", re.ASCII)


def vector(number: int) -> str:
    """Return a softirq vector's name: ``NET_RX``."""
    return VECTORS[number] if 0 <= number < len(VECTORS) else f"vector {number}"


def budget_class(budget: int) -> str:
    """Return who polls with a budget: "" for a device's driver, ``busy-poll`` for an application, ``netpoll``."""
    if budget >= thresholds.NAPI_BUDGET:
        return ""
    return "busy-poll" if budget else "netpoll"


def is_irq_vector(irq: int) -> bool:
    """Return whether a hardirq row is a CPU vector (timer, IPI) rather than a device's line."""
    return irq >= constants("hardirq")["HARDIRQ_FIRST_VECTOR"]


def irq_vector(irq: int) -> str:
    """Return a hardirq row's CPU vector, where it has no name: ``vector 236``."""
    return f"vector {irq - constants('hardirq')['HARDIRQ_FIRST_VECTOR']}"


def task(comm: str, pid: int) -> str:
    """Return ``comm[pid]``, quoting a name that could be read as part of the sentence."""
    if pid == 0:
        return "the idle task"
    return f"{quoted(comm)}[{pid}]" if comm else f"pid {pid}"


def own_task(pid: int) -> str:
    """Return how foreshock's own task is called."""
    return f"foreshock itself (pid {pid})"


def quoted(name: str) -> str:
    """Return a name for a sentence: as it is when it can't be read as part of it, else in quotes it can't end."""
    if _PLAIN.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def scheduling(prio: int) -> str:
    """Return what is special about a task's kernel priority: real-time and deadline tasks; "" for all others."""
    if 0 <= prio < _MAX_RT_PRIO:
        return f"real-time, priority {_MAX_RT_PRIO - 1 - prio}"
    return "deadline task" if prio < 0 else ""


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
