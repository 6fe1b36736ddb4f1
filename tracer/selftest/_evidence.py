"""What the checks judge: windows of known workloads, and what the kernel counted in the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tracer import histogram
from tracer.kernel.counts import Counts
from tracer.probes import all_probes
from tracer.window import Window
from tracer.workloads import Places

__all__ = ["STRANGE_PIDS", "Check", "Evidence", "Scene", "Span", "counted"]

#: Why a check of one task's numbers is skipped in a container with pids of its own.
STRANGE_PIDS = "the kernel tells the host's pids, and here are others: which task is the workload's is not known"


@dataclass(frozen=True)
class Check:
    """One answer: what was measured and what was expected, in words. SKIP has only a reason, as ``measured``."""

    status: Literal["PASS", "FAIL", "SKIP"]
    measured: str
    expected: str = ""

    @classmethod
    def of(cls, passed: bool, measured: str, expected: str) -> Check:
        """Return PASS or FAIL."""
        return cls("PASS" if passed else "FAIL", measured, expected)

    @classmethod
    def skip(cls, reason: str) -> Check:
        """Return SKIP."""
        return cls("SKIP", reason)


@dataclass(frozen=True)
class Span:
    """How far the kernel's counters moved in a window: they were read before and after each of its ends.

    So a right count lies between ``least`` and ``most``, whatever else the node did meanwhile.
    """

    least: int
    most: int

    def holds(self, number: int, slack: int = 0) -> bool:
        """Return whether ``number`` is right to a thousandth, below which the verdict's rules ignore losses, too.

        ``slack`` is for what was under way at an end.
        """
        return self.least - self.least // 1000 - slack <= number <= self.most + self.most // 1000 + slack

    def __add__(self, other: Span) -> Span:
        return Span(self.least + other.least, self.most + other.most)

    def __str__(self) -> str:
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class Scene:
    """One workload's windows, the kernel's counts around their beginning and end, and the workload's own words."""

    name: str
    windows: Mapping[tuple[str, str], Window]
    before: tuple[Counts, Counts]
    after: tuple[Counts, Counts]
    told: Mapping[str, Mapping[str, Any]]
    pids: Mapping[str, int]

    def rows(self, probe: str, table: str) -> np.ndarray:
        """Return a table's rows. KeyError if its probe doesn't run."""
        return self.windows[(probe, table)].rows

    def span(self, count: Callable[[Counts], int]) -> Span:
        """Return how far one of the kernel's counters moved."""
        return Span(count(self.after[0]) - count(self.before[1]), count(self.after[1]) - count(self.before[0]))


@dataclass(frozen=True)
class Evidence:
    """All scenes by name, where the workloads ran, which probes can't run here and why.

    ``opening`` are the windows before the first scene: the kernel's accounting of BPF programs is on there.
    ``host_pids``: the workloads' pids are those that the kernel tells.
    """

    opening: Mapping[tuple[str, str], Window]
    scenes: Mapping[str, Scene]
    places: Places
    cpu_count: int
    probes: Sequence[str]
    refused: Mapping[str, str] = field(default_factory=dict)
    host_pids: bool = True

    def __getitem__(self, name: str) -> Scene:
        return self.scenes[name]

    def all_rows(self, probe: str, table: str) -> np.ndarray:
        """Return a table's rows of all scenes, one after the other."""
        return np.concatenate([scene.rows(probe, table) for scene in self.scenes.values()])

    def whole_span(self, count: Callable[[Counts], int]) -> Span:
        """Return how far one of the kernel's counters moved in all scenes together: they follow without a gap."""
        scenes = list(self.scenes.values())
        first, last = scenes[0], scenes[-1]
        return Span(count(last.after[0]) - count(first.before[1]), count(last.after[1]) - count(first.before[0]))

    def lost(self, probe: str) -> int:
        """Return how many events the trace says that a probe, or what it requires, missed: kernel and own counters."""
        names = [probe, *all_probes()[probe].requires]
        programs = {f"on_{hook.event}".encode() for name in names for hook in all_probes()[name].hooks}
        costs = self.all_rows("agent", "cost")
        skipped = costs["recursion_misses"][np.isin(costs["program"], list(programs))].sum()
        told = [w.losses for scene in self.scenes.values() for (name, _), w in scene.windows.items() if name in names]
        return int(skipped) + sum(losses.get(reason, 0) for losses in told for reason in ("negative", "unmatched"))

    @property
    def hidden(self) -> float:
        """The share of the context switches that the kernel made and showed to no program: of other events as well."""
        checks = [scene.windows[("cpustate", "check")] for scene in self.scenes.values()]
        made = max((int(window.rows["made"].max()) for window in checks if len(window.rows)), default=0)
        return sum(window.losses.get("unseen", 0) for window in checks) / made if made else 0.0

    @property
    def seconds(self) -> float:
        """Length of all scenes together."""
        times = [(w.start_ns, w.end_ns) for scene in self.scenes.values() for w in scene.windows.values()]
        return (max(end for _, end in times) - min(start for start, _ in times)) / 1e9


def counted(rows: np.ndarray) -> int:
    """Return how many values the histograms of some rows hold."""
    return int(histogram.count(rows["slots"]).sum()) if len(rows) else 0
