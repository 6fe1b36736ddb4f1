"""Who held a CPU between two moments, from the log of stays that travels with a rare event."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tracer.probe import Column

__all__ = ["CGROUP", "HOLDER_PRIO", "Holders", "fitted", "holders"]

#: Column of a cgroup's path. A pod's is about 180 bytes long, and what tells it from its siblings comes last.
CGROUP = "S192"
HOLDER_PRIO = Column("holder_prio", "", "the holder's priority: below 0 deadline, to 99 real-time, to 139 ordinary")


@dataclass(frozen=True)
class Holders:
    """How ``end_ns - start_ns`` of one CPU was spent, as far back as the log reaches (``covered_ns``).

    ``pid``, ``tgid``, ``prio`` and ``comm`` are the task with the most time of its own, as it was switched in last,
    ``holder_ns`` that time, ``tasks`` the number of distinct tasks seen (idle not counted). Times are disjoint.
    """

    pid: int = 0
    tgid: int = 0
    prio: int = 0
    comm: bytes = b""
    holder_ns: int = 0
    tasks: int = 0
    task_ns: int = 0
    idle_ns: int = 0
    softirq_ns: int = 0
    hardirq_ns: int = 0
    covered_ns: int = 0


def holders(cpu: np.void, start_ns: int, end_ns: int, *, skip_pid: int = -1) -> Holders:
    """Share out ``start_ns``..``end_ns`` among the stays logged in one ``struct cpu_row``.

    Interrupt time inside a stay that lies only partly in the interval is shared in proportion.
    ``skip_pid`` leaves a task out: the one that waited, whose own stay may have begun.
    """
    stays, newest = cpu["stays"], int(cpu["switches"])
    # Plain numbers: for so few, numpy takes longer than Python.
    times = [stays[name].tolist() for name in ("started_ns", "softirq_ns", "hardirq_ns", "pid")]
    softirq_then, hardirq_then = _interrupts_until(cpu, end_ns)
    ended = end_ns
    own: dict[int, int] = {}
    latest: dict[int, int] = {}
    idle_ns = softirq_ns = hardirq_ns = covered_ns = 0
    for place in range(newest, newest - len(stays), -1):
        at = place % len(stays)
        started, softirq_at_start, hardirq_at_start, pid = (column[at] for column in times)
        if not started:
            continue
        latest.setdefault(pid, at)
        overlap = max(min(ended, end_ns) - max(started, start_ns), 0)
        if overlap and pid != skip_pid:
            # The log may have been copied while it was written to: no part is longer than what holds it.
            softirq = min(max(softirq_then - softirq_at_start, 0) * overlap // (ended - started), overlap)
            hardirq = max(hardirq_then - hardirq_at_start, 0) * overlap // (ended - started)
            hardirq = min(hardirq, overlap - softirq)
            softirq_ns, hardirq_ns, covered_ns = softirq_ns + softirq, hardirq_ns + hardirq, covered_ns + overlap
            if pid:
                own[pid] = own.get(pid, 0) + overlap - softirq - hardirq
            else:
                idle_ns += overlap - softirq - hardirq
        ended, softirq_then, hardirq_then = started, softirq_at_start, hardirq_at_start
    found = Holders(
        task_ns=sum(own.values()),
        idle_ns=idle_ns,
        softirq_ns=softirq_ns,
        hardirq_ns=hardirq_ns,
        covered_ns=covered_ns,
        tasks=sum(ns > 0 for ns in own.values()),
    )
    if not found.tasks:
        return found
    pid = max(own, key=lambda pid: (own[pid], -pid))
    longest = stays[latest[pid]]
    return replace(
        found,
        pid=pid,
        tgid=int(longest["tgid"]),
        prio=int(longest["prio"]),
        comm=bytes(longest["comm"]),
        holder_ns=own[pid],
    )


def _interrupts_until(cpu: np.void, end_ns: int) -> tuple[int, int]:
    """Return the CPU's cumulated softirq and hard interrupt time at ``end_ns``, with what is still open then.

    A task pulled off a CPU that is stuck in a softirq has waited for that, not for the task underneath.
    """
    softirq, hardirq = int(cpu["softirq_ns"]), int(cpu["hardirq_ns"])
    if entered := int(cpu["hardirq_entered_ns"]):
        hardirq += max(end_ns - entered, 0)
    if entered := int(cpu["softirq_entered_ns"]):
        softirq += max(end_ns - entered - max(hardirq - int(cpu["softirq_hardirq_ns"]), 0), 0)
    return softirq, hardirq


def fitted(path: bytes) -> bytes:
    """Shorten a cgroup's path to the column's width, from the front."""
    width = np.dtype(CGROUP).itemsize
    return path if len(path) <= width else b"..." + path[3 - width :]
