"""What the tracer itself costs, from the kernel's accounting of its programs and of its process."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.analysis.summary import Summary

__all__ = ["OwnCost", "ProgramCost", "own_cost"]


@dataclass(frozen=True)
class ProgramCost:
    """One kernel program: runs, time in it (0 when the kernel's statistics were off), runs skipped."""

    program: str
    run_count: int
    run_ns: int
    misses: int

    @property
    def ns_per_run(self) -> float:
        """Mean time of a run; NaN when it was not measured."""
        return self.run_ns / self.run_count if self.run_count and self.run_ns else float("nan")


@dataclass(frozen=True)
class OwnCost:
    """Shares of one CPU, over the whole run; NaN when not measured."""

    programs: tuple[ProgramCost, ...]
    program_share: float
    agent_share: float
    resident_bytes: float

    @property
    def cpu_share(self) -> float:
        """Programs and process together, of what was measured."""
        parts = [part for part in (self.program_share, self.agent_share) if part == part]
        return sum(parts) if parts else float("nan")


def own_cost(summary: Summary) -> OwnCost | None:
    """Return the tracer's cost; None when it was not recorded."""
    table = summary.table("agent", "cost")
    if table is None or table.seconds <= 0:
        return None
    ns = table.seconds * 1e9
    groups = summary.cost()
    programs = tuple(
        ProgramCost(name, group.sums["run_count"], group.sums["run_ns"], group.sums["recursion_misses"])
        for name, group in groups.items()
        if group.sums["run_count"]
    )
    run_ns, cpu_ns = (sum(group.sums[name] for group in groups.values()) for name in ("run_ns", "cpu_ns"))
    resident = max((float(group.gauges.get("resident_bytes") or 0) for group in groups.values()), default=0.0)
    nan = float("nan")
    return OwnCost(programs, run_ns / ns if run_ns else nan, cpu_ns / ns if cpu_ns else nan, resident or nan)
