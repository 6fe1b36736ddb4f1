"""What the tracer itself costs, from the kernel's accounting of its programs and of its process."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.analysis.merged import Group
from tracer.analysis.summary import Summary

__all__ = ["OwnCost", "ProgramCost", "own_cost"]


@dataclass(frozen=True)
class ProgramCost:
    """One kernel program: its runs and its time during ``sampled_ns``, when the kernel's accounting was on."""

    program: str
    run_count: int
    run_ns: int
    misses: int
    sampled_ns: int

    @property
    def share(self) -> float:
        """Its share of one CPU; NaN when it was not measured."""
        return self.run_ns / self.sampled_ns if self.sampled_ns else float("nan")

    @property
    def ns_per_run(self) -> float:
        """Mean time of a run; NaN when it was not measured."""
        return self.run_ns / self.run_count if self.run_count else float("nan")


@dataclass(frozen=True)
class OwnCost:
    """Shares of one CPU, over the whole run; NaN when not measured."""

    programs: tuple[ProgramCost, ...]
    program_share: float
    agent_share: float
    resident_bytes: float
    map_bytes: float

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
    groups = summary.cost()
    programs = tuple(
        ProgramCost(name, *(group.sums[column] for column in ("run_count", "run_ns", "recursion_misses", "sampled_ns")))
        for name, group in groups.items()
        if name != "agent"
    )
    shares = [one.share for one in programs if one.sampled_ns]
    agent = groups.get("agent")
    return OwnCost(
        programs,
        sum(shares) if shares else float("nan"),
        agent.sums["cpu_ns"] / table.ns if agent else float("nan"),
        _gauge(agent, "resident_bytes"),
        _gauge(agent, "map_bytes"),
    )


def _gauge(group: Group | None, name: str) -> float:
    return float((group.gauges.get(name) if group else 0) or float("nan"))
