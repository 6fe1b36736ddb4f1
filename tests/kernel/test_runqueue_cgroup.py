"""Waits go to the cgroup of the task that waited, preemptions to that of the task that was pushed out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernel.traced import Traced, counted
from kernel.workload import HOG, SPIN, Task

from tracer.kernel.cgroups import CgroupNames


@pytest.fixture
def groups() -> Iterator[tuple[Path, Path]]:
    """Two cgroups of the hierarchy that CPU time is charged to."""
    mount = Path(os.fsdecode(CgroupNames().trees[0][1]))
    made = tuple(mount / f"foreshock-{name}-{os.getpid()}" for name in ("victim", "hog"))
    for folder in made:
        folder.mkdir()
    yield made[0], made[1]
    for folder in made:
        folder.rmdir()


def waited_so_far_ns(pid: int) -> int:
    """The kernel's own account of how long a task has waited for a CPU."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])


def test_tells_victims_from_hogs(attach: Callable[..., Traced], groups: tuple[Path, Path]) -> None:
    victims, hogs = groups
    with Task(SPIN, 1.5, cpu=1) as victim, Task(HOG, 0.3, cpu=1) as hog:
        # Real-time tasks may be refused a cgroup without a real-time share: the hog moves before it turns one.
        (victims / "cgroup.procs").write_text(str(victim.pid))
        traced = attach("runqueue_cgroup")
        traced.collect()
        before_ns = waited_so_far_ns(victim.pid)
        victim.go()
        time.sleep(0.2)
        hog.go()
        hog.result()
        used = victim.result()
        # Asleep again, so that what it waited stands still while it is read.
        time.sleep(0.1)
        windows = traced.collect()
        by_kernel_ns = waited_so_far_ns(victim.pid) - before_ns
    rows = {bytes(row["cgroup"]).decode(): row for row in windows["runqueue_cgroup.wait"].rows}
    name = f"/{victims.name}"
    assert name in rows, sorted(rows)
    waited_ns = int(rows[name]["sum"])
    assert waited_ns == pytest.approx(by_kernel_ns, rel=0.05)
    assert waited_ns > 200_000_000
    assert int(rows[name]["preempted"]) == pytest.approx(used["involuntary"], abs=5, rel=0.1)
    # Every wait belongs to some cgroup: together they are runqueue's own, but for those read while they ended.
    everything = counted(windows["runqueue.wait"].rows)
    by_group = sum(counted(row) for row in rows.values()) + windows["runqueue_cgroup.wait"].losses["folded"]
    assert by_group == pytest.approx(everything, abs=max(20, everything * 0.02))
    assert f"/{hogs.name}" not in rows
