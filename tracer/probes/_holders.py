"""Who held a CPU between two moments, from the log of stays that travels with a rare event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["CGROUP", "Holders", "fitted", "holders"]

#: Column of a cgroup's path. A pod's is about 180 bytes long, and what tells it from its siblings comes last.
CGROUP = "S192"


@dataclass(frozen=True)
class Holders:
    """How ``end_ns - start_ns`` of one CPU was spent, as far back as the log reaches (``covered_ns``).

    ``pid``, ``tgid`` and ``comm`` are the task with the most time of its own, ``holder_ns`` that time,
    ``tasks`` the number of distinct tasks seen (idle not counted). Times are disjoint.
    """

    pid: int = 0
    tgid: int = 0
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
    size = len(cpu["stays"])
    order = (int(cpu["switches"]) - np.arange(size - 1, -1, -1)) % size
    stays = cpu["stays"][order]
    stays = stays[stays["started_ns"] > 0]
    if not stays.size:
        return Holders()
    started = stays["started_ns"].astype("i8")
    ended = np.append(started[1:], max(end_ns, started[-1]))
    overlap = np.maximum(np.minimum(ended, end_ns) - np.maximum(started, start_ns), 0)
    share = overlap / np.maximum(ended - started, 1)
    # The log may have been copied while it was written to: no part is longer than what holds it.
    softirq = np.minimum(_inside(stays["softirq_ns"], cpu["softirq_ns"]) * share, overlap)
    hardirq = np.minimum(_inside(stays["hardirq_ns"], cpu["hardirq_ns"]) * share, overlap - softirq)
    own = overlap - softirq - hardirq
    ours = stays["pid"] != skip_pid
    busy = ours & (stays["pid"] != 0)
    pids, which = np.unique(stays["pid"][busy], return_inverse=True)
    per_task = np.bincount(which, weights=own[busy], minlength=len(pids))
    found = Holders(
        task_ns=int(own[busy].sum()),
        idle_ns=int(own[ours & (stays["pid"] == 0)].sum()),
        softirq_ns=int(softirq[ours].sum()),
        hardirq_ns=int(hardirq[ours].sum()),
        covered_ns=int(overlap[ours].sum()),
        tasks=int((per_task > 0).sum()),
    )
    if not per_task.any():
        return found
    longest = stays[stays["pid"] == pids[int(per_task.argmax())]][-1]
    return Holders(
        **{
            **found.__dict__,
            "pid": int(longest["pid"]),
            "tgid": int(longest["tgid"]),
            "comm": bytes(longest["comm"]),
            "holder_ns": int(per_task.max()),
        }
    )


def fitted(path: bytes) -> bytes:
    """Shorten a cgroup's path to the column's width, from the front."""
    width = np.dtype(CGROUP).itemsize
    return path if len(path) <= width else b"..." + path[3 - width :]


def _inside(at_start: np.ndarray, now: int) -> np.ndarray:
    """Interrupt time inside each stay: from the cumulated time at its start to that at the next one's."""
    following = np.append(at_start[1:], now).astype("i8")
    inside: np.ndarray = np.maximum(following - at_start.astype("i8"), 0)
    return inside
