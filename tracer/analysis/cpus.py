"""How each CPU spent its time, and which tasks had it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tracer.analysis.rows import text
from tracer.analysis.summary import Summary

__all__ = ["CpuTime", "cpu_times", "sampled_function", "sampled_tasks"]

#: Of one thread, that are looked at: the heaviest.
_STACKS = 256


@dataclass(frozen=True)
class CpuTime:
    """Shares of one CPU's accounted time; the four add up to 1."""

    cpu: int
    running: float
    idle: float
    softirq: float
    hardirq: float
    accounted_ns: int

    @property
    def busy(self) -> float:
        """Everything but idle."""
        return self.running + self.interrupts

    @property
    def interrupts(self) -> float:
        """Softirq and hardirq time together."""
        return self.softirq + self.hardirq


def cpu_times(summary: Summary) -> dict[int, CpuTime]:
    """Return each CPU's shares by number; empty when cpustate was not recorded."""
    table = summary.table("cpustate", "time")
    found: dict[int, CpuTime] = {}
    for (cpu,), group in table.groups("cpu").items() if table else ():
        parts = [group.sums[name] for name in ("running_ns", "idle_ns", "softirq_ns", "hardirq_ns")]
        total = sum(parts)
        if total:
            running, idle, softirq, hardirq = (part / total for part in parts)
            found[int(cpu)] = CpuTime(int(cpu), running, idle, softirq, hardirq, total)
    return dict(sorted(found.items()))


def sampled_function(summary: Summary, tid: int) -> tuple[float, list[str]] | None:
    """Return the share of a thread's samples in its busiest function, and that with its callers, innermost first."""
    stacks = summary.stacks["oncpu"].of_thread(tid, _STACKS) if "oncpu" in summary.stacks else []
    weights: Counter[str] = Counter()
    for one in stacks:
        if one.frames:
            weights[one.frames[-1].symbol] += one.weight
    for symbol, weight in weights.most_common(1):
        frames = next(one.frames for one in stacks if one.frames and one.frames[-1].symbol == symbol)
        return weight / sum(one.weight for one in stacks), [frame.symbol for frame in reversed(frames)]
    return None


def sampled_tasks(summary: Summary, cpu: int, limit: int = 3) -> list[tuple[str, int, float]]:
    """Return (comm, pid, share of the samples of ``cpu``), largest first; empty without on-CPU samples."""
    sums = summary.sample_cpus.get(("oncpu", "samples"))
    if sums is None:
        return []
    here = sums.rows()[sums.rows()["cpu"] == cpu]
    total = int(here["weight"].sum())
    ranked = here[np.lexsort((here["pid"], -here["weight"].astype(np.int64)))][:limit]
    return [(text(comm), pid, weight / total) for _, pid, comm, weight in ranked.tolist()] if total else []
