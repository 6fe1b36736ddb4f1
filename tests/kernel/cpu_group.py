"""Cgroups of the hierarchy that CPU time is charged to, v1 or v2: quotas, weights and the kernel's own account."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tracer.kernel.cgroups import CgroupNames

__all__ = ["PERIOD_NS", "CpuGroup", "cpu_group"]

PERIOD_NS = 100_000_000


class CpuGroup:
    """One cgroup, empty at the end of the test."""

    def __init__(self, name: str) -> None:
        names = CgroupNames()
        mount = Path(os.fsdecode(names._mount))
        self._v1 = names.is_v1
        if not self._v1:
            (mount / "cgroup.subtree_control").write_text("+cpu")
        self.name = f"foreshock-{name}-{os.getpid()}"
        self.path = f"/{self.name}"
        self._folder = mount / self.name
        self._folder.mkdir()

    def add(self, pid: int) -> None:
        (self._folder / "cgroup.procs").write_text(str(pid))

    def quota(self, share: float) -> None:
        """Let it have so much of one CPU, in periods of 100 ms."""
        quota, period = int(PERIOD_NS * share) // 1000, PERIOD_NS // 1000
        if self._v1:
            (self._folder / "cpu.cfs_period_us").write_text(str(period))
            (self._folder / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self._folder / "cpu.max").write_text(f"{quota} {period}")

    def weigh(self, times: int) -> None:
        """Let it count as so many ordinary tasks."""
        (self._folder / ("cpu.shares" if self._v1 else "cpu.weight")).write_text(
            str(times * (1024 if self._v1 else 100))
        )

    def throttled_ns(self) -> int:
        """How long the kernel says that the quota held it back, of all CPUs."""
        stat = dict(line.split() for line in (self._folder / "cpu.stat").read_text().splitlines())
        return int(stat["throttled_time"]) if "throttled_time" in stat else 1000 * int(stat["throttled_usec"])

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            self._folder.rmdir()


@pytest.fixture
def cpu_group() -> Iterator[Callable[[str], CpuGroup]]:
    """Return a function that makes a cgroup; removed after the test, when its processes have ended."""
    with ExitStack() as undo:

        def make(name: str) -> CpuGroup:
            group = CpuGroup(name)
            undo.callback(group.remove)
            return group

        yield make
