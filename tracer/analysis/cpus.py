"""How each CPU spent its time, and which tasks had it."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.analysis.summary import Summary

__all__ = ["CpuTime", "cpu_times", "sampled_tasks"]


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


def sampled_tasks(summary: Summary, cpu: int, limit: int = 3) -> list[tuple[str, int, float]]:
    """Return (comm, pid, share of the samples of ``cpu``), largest first; empty without on-CPU samples."""
    tally = summary.sample_cpus.get(("oncpu", "samples"))
    here = [(comm, pid, weight) for (on, pid, comm), weight in tally.items() if on == cpu] if tally else []
    total = sum(weight for _, _, weight in here)
    return [(comm, pid, weight / total) for comm, pid, weight in here[:limit]] if total else []
