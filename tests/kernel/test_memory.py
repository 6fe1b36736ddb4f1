"""memory: amounts against /proc/meminfo, growth of slabs and cgroups made on purpose, and what a read costs."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tracer.kernel.cgroups import hierarchy
from tracer.kernel.memory_growth import CgroupGrowth, SlabGrowth
from tracer.kernel.sources.memory import Source
from tracer.probes import find_probe

SECOND = 1_000_000_000
MIB = 1 << 20


@pytest.fixture
def source() -> Iterator[Source]:
    source = Source({})
    source.read(0)
    yield source
    source.close()


def info(source: Source, now_ns: int) -> np.void:
    (row,) = source.read(now_ns)["info"][0]
    return row


def meminfo() -> dict[str, int]:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {name.rstrip(":"): int(amount) * 1024 for name, amount, *_ in lines}


def test_amounts_are_those_of_meminfo(source):
    # Read before and after: others take and give back meanwhile.
    before, row, after = meminfo(), info(source, SECOND), meminfo()
    assert row["total"] == after["MemTotal"]
    for name, line in (("available", "MemAvailable"), ("anon", "AnonPages"), ("slab_unreclaimable", "SUnreclaim")):
        low, high = sorted((before[line], after[line]))
        assert low - 64 * MIB <= row[name] <= high + 64 * MIB
    # What nobody names is a small part of a node that has no driver with memory of its own.
    assert row["unnamed"] < row["total"] // 4


def test_memory_that_a_process_takes_is_anonymous(source):
    before = info(source, SECOND)
    with mmap.mmap(-1, 256 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as taken:
        for at in range(0, len(taken), mmap.PAGESIZE):
            taken[at] = 1
        during = info(source, 2 * SECOND)
    # Beside what others take and give back in this fraction of a second.
    assert int(during["anon"]) - int(before["anon"]) == pytest.approx(256 * MIB, abs=192 * MIB)


def test_effort_is_counted_from_read_to_read(source):
    rows, losses = source.read(SECOND)["effort"]
    assert len(rows) == 1 and losses == {"reset": 0}
    assert {"allocation_stalls", "oom_kills", "direct_scanned"} <= set(rows.dtype.names)
    assert ("some_ns" in rows.dtype.names) == _has_pressure()


def _has_pressure() -> bool:
    with suppress(OSError):
        return b"total=" in Path("/proc/pressure/memory").read_bytes()
    return False


def test_slabs_that_grow_are_named(tmp_path):
    growth = SlabGrowth()
    growth.look(SECOND, 1000)
    # A directory entry and an inode of tmpfs each; unlike files of a disk's, they are there until they are removed.
    folder = Path("/dev/shm") / f"foreshock-{os.getpid()}"
    folder.mkdir()
    try:
        for number in range(20_000):
            os.mknod(folder / str(number))
        growth.look(12 * SECOND, 2000)
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        growth.close()
    # Others may grow meanwhile, more than this one.
    (inodes,) = [each for each in growth.grown if each.name == b"shmem_inode_cache"]
    assert inodes.grown > 20_000 * 300 and inodes.over_ns == 11 * SECOND
    assert inodes.bytes >= inodes.grown


def test_slabs_are_looked_at_seldom(monkeypatch):
    growth, looks = SlabGrowth(), []
    monkeypatch.setattr(growth._file, "read", lambda: looks.append(1) or b"")
    for second in range(1, 30):
        growth.look(second * SECOND, 1000)  # unchanged
    assert len(looks) == 1
    for second in range(30, 60):
        growth.look(second * SECOND, 1000 * second)
    assert 3 <= len(looks) <= 5
    growth.close()


@pytest.fixture
def group() -> Iterator[bytes]:
    """A memory cgroup of its own inside a parent of its own."""
    is_v1, mount, _ = hierarchy(b"memory")
    parent = mount + b"/foreshock-test-%d" % os.getpid()
    if not mount or not is_v1 and b"memory" not in (Path(os.fsdecode(mount)) / "cgroup.controllers").read_bytes():
        pytest.skip("no memory controller")
    folder = parent + b"/inner"
    os.mkdir(parent)
    if not is_v1:
        with suppress(OSError):
            Path(os.fsdecode(parent), "cgroup.subtree_control").write_text("+memory")
    os.mkdir(folder)
    yield folder
    os.rmdir(folder)
    os.rmdir(parent)


def test_a_cgroup_that_grows_is_named_and_its_parent_is_not(group):
    growth = CgroupGrowth()
    turn(growth, 100)
    child = os.fork()
    if not child:
        with suppress(BaseException):
            Path(os.fsdecode(group), "cgroup.procs").write_text(str(os.getpid()))
            taken = mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            for at in range(0, len(taken), mmap.PAGESIZE):
                taken[at] = 1
            time.sleep(60)
        os._exit(0)
    try:
        usage = Path(os.fsdecode(group + growth._file))
        deadline = time.monotonic() + 10
        while int(usage.read_text()) < 64 * MIB and time.monotonic() < deadline:
            time.sleep(0.05)
        turn(growth, 200)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    # Others may grow meanwhile, more than this one.
    grown = {each.name: each.grown for each in growth.grown}
    (inner,) = [name for name in grown if name.endswith(b"/foreshock-test-%d/inner" % os.getpid())]
    assert grown[inner] >= 60 * MIB
    assert inner.removesuffix(b"/inner") not in grown


def turn(growth: CgroupGrowth, start_s: int) -> None:
    """Step until every group was looked at: what is left of a turn, and another of 10 s."""
    for second in range(start_s, start_s + 15):
        growth.step(second * SECOND)


def test_the_declaration_is_what_comes_out(attach):
    traced = attach("memory")
    time.sleep(0.3)
    windows = traced.collect()
    for table in find_probe("memory").tables:
        names = {column.name for column in table.columns}
        assert set(windows[f"memory.{table.name}"].rows.dtype.names) <= names
    assert len(windows["memory.info"].rows) == 1


def test_short_intervals_are_not_all_read(source):
    read = [len(source.read(SECOND + number * SECOND // 100)["info"][0]) for number in range(100)]
    assert 3 <= sum(read) <= 5


def test_a_read_is_cheap(source):
    costs = []
    for second in range(1, 100):
        began = time.thread_time_ns()
        source.read(second * SECOND)
        costs.append(time.thread_time_ns() - began)
    # At one read a second: half a thousandth of a CPU, and twice that for machines slower than those of the authors.
    assert sum(costs) / len(costs) < 1_000_000
