"""Who and what takes processes' time, in words and by the kind of cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracer.analysis.names import quoted
from tracer.probes.hardirq import VECTOR_NAMES

__all__ = ["OTHERS", "OWN", "TOGETHER", "WAITED", "Cause", "Taken", "named"]

Cause = Literal["quota", "neighbour", "both", "overcommitted", "own", "interrupts", "memory", "frequency", "other"]


@dataclass(frozen=True)
class Taken:
    """One who took time: ``what`` in words that may hold unescaped names from the node, ``cause`` its kind."""

    what: str
    cause: Cause
    ns: int


#: What needs no name of who it was, by the column of ``ledger.time``.
OWN: dict[str, tuple[str, Cause]] = {
    "throttled_ns": ("its own quota", "quota"),
    "reclaim_ns": ("reclaiming memory", "memory"),
    "compaction_ns": ("compacting memory", "memory"),
    "wait_softirq_ns": ("softirqs while it waited", "interrupts"),
    "wait_hardirq_ns": ("interrupts while it waited", "interrupts"),
    "slow_ns": ("lowered frequency", "frequency"),
}


#: Who took it where that is the job itself: noisy to nobody, only too many.
TOGETHER = {"ranks": "other ranks of its job", "processes": "other processes of its job"}
#: Softirqs that had the CPU while the process waited for it: of its ``wait_softirq_ns``.
WAITED = "wsoftirq"
#: Small ones, told together.
OTHERS = "others"
_NOBODY = {"idle": "CPUs that woke up", "rest": OTHERS}


def named(kind: str, number: int, name: str, cgroup: str, own_cgroup: str) -> tuple[str, Cause]:
    """Return who took time, in words, and as what."""
    if kind == "task":
        # The last part of a cgroup's path names the service or the container.
        place = cgroup.rstrip("/").rpartition("/")[2] if cgroup != own_cgroup else ""
        return quoted(name) + (f" (in {quoted(place)})" if place else ""), "neighbour"
    if kind == "own":
        return "its other threads", "own"
    if kind in ("softirq", WAITED):
        return f"softirq {quoted(name)}", "interrupts"
    if kind == "line":
        return f"interrupt {quoted(name)}", "interrupts"
    if kind == "vector":
        return f"interrupt {VECTOR_NAMES.get(number, b'vector %d' % number).decode()}", "interrupts"
    return _NOBODY.get(kind, "not known whom"), "other"
