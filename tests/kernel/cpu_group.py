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
        mount = Path(os.fsdecode(names.trees[0][1]))
        self._v1 = names.is_v1
        if not self._v1:
            (mount / "cgroup.subtree_control").write_text("+cpu")
        self.name = f"foreshock-{name}-{os.getpid()}"
        self.path = f"/{self.name}"
        self._folder = self._account = mount / self.name
        self._folder.mkdir()
        # In v1 who counts may be another hierarchy.
        if self._v1 and not (self._folder / "cpuacct.usage").exists():
            self._account = mount.parent / "cpuacct" / self.name
            self._account.mkdir()

    def add(self, pid: int) -> None:
        for folder in {self._folder, self._account}:
            (folder / "cgroup.procs").write_text(str(pid))

    def dismiss(self, pid: int) -> None:
        """Let a process go back to the root."""
        for folder in {self._folder, self._account}:
            (folder.parent / "cgroup.procs").write_text(str(pid))

    def pids(self) -> list[int]:
        """Return the processes in it."""
        return [int(pid) for pid in (self._folder / "cgroup.procs").read_text().split()]

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
        stat = self._stat()
        return int(stat["throttled_time"]) if "throttled_time" in stat else 1000 * int(stat["throttled_usec"])

    def used_ns(self) -> int:
        """How long the kernel says that its processes ran."""
        if self._v1:
            return int((self._account / "cpuacct.usage").read_text())
        return 1000 * int(self._stat()["usage_usec"])

    def _stat(self) -> dict[str, str]:
        return dict(line.split() for line in (self._folder / "cpu.stat").read_text().splitlines())

    def remove(self) -> None:
        for folder in {self._folder, self._account}:
            with suppress(FileNotFoundError):
                folder.rmdir()


@pytest.fixture
def cpu_group() -> Iterator[Callable[[str], CpuGroup]]:
    """Return a function that makes a cgroup; removed after the test, when its processes have ended."""
    with ExitStack() as undo:

        def make(name: str) -> CpuGroup:
            group = CpuGroup(name)
            undo.callback(group.remove)
            return group

        yield make
