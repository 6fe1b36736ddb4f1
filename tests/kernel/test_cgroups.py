"""Cgroup names, against directories that the test makes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernel.traced import Traced
from kernel.workload import SPIN, Task

from tracer.kernel.cgroups import CgroupNames


def hierarchies() -> list[Path]:
    """The mount points to test: v1's cpu hierarchy and v2's, as far as they are there."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, source = line.partition(" - ")
        kind, _, options = source.split(None, 2)
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
            found.append(Path(mount.split()[4]))
    return found


@pytest.fixture(params=hierarchies(), ids=str)
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A cgroup with a child, removed afterwards."""
    path = request.param / f"foreshock-test-{os.getpid()}"
    path.mkdir()
    child = path / "child"
    child.mkdir()
    yield child
    for folder in (child, path):
        if folder.is_dir():
            folder.rmdir()


@pytest.fixture
def names(group: Path, tmp_path: Path) -> CgroupNames:
    """The names of the hierarchy of ``group``, whichever the machine itself would use."""
    own = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {group.parent.parent} " in line]
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text("\n".join(own) + "\n")
    return CgroupNames(str(tmp_path))


def test_knows_groups_by_inode_and_remembers_them(names: CgroupNames, group: Path) -> None:
    inode = group.stat().st_ino
    path = f"/{group.parent.name}/child"
    assert names.cgroup(inode) == path.encode()
    assert names.id_of(path) == inode
    group.rmdir()
    names._next_scan = 0
    names.cgroup(2**60)
    assert names.cgroup(inode) == path.encode()


def test_finds_groups_that_came_later(names: CgroupNames, group: Path) -> None:
    assert names.cgroup(group.stat().st_ino)
    later = group / "later"
    later.mkdir()
    try:
        inode = later.stat().st_ino
        assert names.cgroup(inode) == b""
        names._next_scan = 0
        assert names.cgroup(inode).endswith(b"/child/later")
    finally:
        later.rmdir()


def test_knows_the_group_of_a_process() -> None:
    names = CgroupNames()
    (mount,) = [path for path in hierarchies() if os.fsencode(path) == names.trees[0][1]]
    path = mount / f"foreshock-test-{os.getpid()}-pid"
    path.mkdir()
    child = subprocess.Popen(["sleep", "60"])
    try:
        (path / "cgroup.procs").write_text(str(child.pid))
        assert names.cgroup_of(child.pid) == f"/{path.name}".encode()
    finally:
        child.kill()
        child.wait()
        path.rmdir()
    assert names.cgroup_of(child.pid) == b""


def test_a_task_is_told_by_the_hierarchy_that_it_is_in_a_group_of(attach: Callable[..., Traced], group: Path) -> None:
    """On a hybrid node a service may be in a group of v2's only, or of v1's only."""
    name, names = f"/{group.parent.name}/child", CgroupNames()
    with Task(SPIN, 0.3, cpu=1) as task:
        (group / "cgroup.procs").write_text(str(task.pid))
        traced = attach("runqueue_cgroup", "ledger", FILTER_CGROUP=names.id_of(name))
        traced.collect()
        task.go()
        task.result()
        assert names.cgroup_of(task.pid) == name.encode() and task.pid in names.processes(name.encode())
        windows = traced.collect()
    assert {bytes(row["cgroup"]) for row in windows["runqueue_cgroup.wait"].rows} >= {name.encode()}
    (ran,) = (row for row in windows["ledger.time"].rows if row["pid"] == task.pid)
    assert bytes(ran["cgroup"]) == name.encode()
    # Of the filter's group alone: everybody else is in another one.
    assert {bytes(row["cgroup"]) for row in windows["runqueue.worst"].rows} <= {name.encode()}


def test_a_scan_of_many_groups_is_quick(names: CgroupNames, group: Path) -> None:
    made = [group / f"g{number}" for number in range(300)]
    for folder in made:
        folder.mkdir()
    try:
        began = time.perf_counter()
        assert names.cgroup(made[-1].stat().st_ino)
        assert time.perf_counter() - began < 0.1
    finally:
        for folder in made:
            folder.rmdir()
