"""The faults: what each does to a node, and what a comparison of it with its twins must say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from kernel.cpu_group import CpuGroup

from tests.incident.node import FAR, inside, steer
from tracer.workloads._process import Workload
from tracer.workloads.crowd import Crowd
from tracer.workloads.hog import Hog

from .node import HOUSE_CPU, JOB_CPU, QUOTA, Node, group

__all__ = ["FAULTS", "Fault"]

#: Longer than any recording; a fault ends with its block.
_SECONDS = 60
_SLICE = Path("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: of the node that has it, too.
        injected: what is done to the node, in words.
        begin: a context manager, entered when the fault begins.
        causes: the classes of cause that are right.
        culprit: what must be named; "" where the cause says it all.
        setting: the row of the fingerprint that must be told.
        early: it is there before the recording begins, as a setting is.
    """

    name: str
    injected: str
    begin: Callable[[Node], AbstractContextManager[None]]
    causes: tuple[str, ...]
    culprit: str = ""
    setting: str = ""
    early: bool = False


@contextlib.contextmanager
def _load(load: Workload, where: str) -> Iterator[None]:
    """Run a load in a cgroup of its own, which counts four times as much as the job's."""
    with group(where, 4) as own, load:
        own.add(load.pid)
        load.go()
        yield


def _fifo_hog(node: Node) -> AbstractContextManager[None]:
    return _real_time(Hog(JOB_CPU, bursts=2 * _SECONDS, burst=0.4, rest=0.1), node.lab)


@contextlib.contextmanager
def _real_time(load: Workload, lab: CpuGroup) -> Iterator[None]:
    with load:
        # Cgroups may have no real-time time of their own (CONFIG_RT_GROUP_SCHED), the root has.
        lab.dismiss(load.pid)
        load.go()
        yield


@contextlib.contextmanager
def _quota(node: Node) -> Iterator[None]:
    node.job.group.quota(0.4)
    try:
        yield
    finally:
        node.job.group.quota(QUOTA)


def _noisy_cgroup(node: Node) -> AbstractContextManager[None]:
    return _load(Crowd(JOB_CPU, _SECONDS, tasks=4), "noisy")


@contextlib.contextmanager
def _reader(node: Node) -> Iterator[None]:
    with group("monitoring") as own, inside(FAR, "read", HOUSE_CPU, "/proc/net/arp", 0.03) as reader:
        own.add(reader.pid)
        yield


@contextlib.contextmanager
def _steering(node: Node) -> Iterator[None]:
    steer(JOB_CPU)
    try:
        yield
    finally:
        steer(HOUSE_CPU)


@contextlib.contextmanager
def _slow_storage(node: Node) -> Iterator[None]:
    node.slow_disk(20)
    try:
        yield
    finally:
        node.slow_disk(0)


def _clock_hog(node: Node) -> AbstractContextManager[None]:
    return _load(Hog(JOB_CPU, bursts=1, burst=_SECONDS, rest=0, urgent=False), "clock")


@contextlib.contextmanager
def _setting(node: Node) -> Iterator[None]:
    before = _SLICE.read_text()
    _SLICE.write_text("100000")
    try:
        yield
    finally:
        _SLICE.write_text(before)


FAULTS = {
    fault.name: fault
    for fault in (
        Fault(
            "fifo-hog",
            "a real-time task takes rank 1's CPU for 400 ms at a time, with 100 ms in between",
            _fifo_hog,
            ("scheduler",),
            "hog",
        ),
        Fault(
            "quota",
            "the job's cgroup gets a quota of 0.4 CPUs; it wants twice as much",
            _quota,
            ("quota",),
        ),
        Fault(
            "noisy-cgroup",
            "four ordinary tasks of another cgroup, of four times the job's weight, compute on rank 1's CPU",
            _noisy_cgroup,
            ("scheduler",),
            "crowd",
        ),
        Fault(
            "softirq-reader",
            "a monitoring agent reads /proc/net/arp (250,000 neighbours, none its own) on rank 0's CPU, with softirqs "
            "off, as a reader of memory.stat has them",
            _reader,
            ("softirq", "scheduler"),
            "arp-exporter",
        ),
        Fault(
            "steering",
            "what packets cost is steered (RPS) from rank 0's CPU onto that of rank 1, which has the most to do",
            _steering,
            ("softirq", "interrupts"),
            "NET_RX",
        ),
        Fault(
            "slow-storage",
            "the job's loop device does 20 reads per second",
            _slow_storage,
            ("storage",),
        ),
        Fault(
            "clock-hog",
            "a task pinned to rank 1's CPU, in a cgroup of four times the job's weight, reads the clock in a loop",
            _clock_hog,
            ("scheduler",),
            "hog",
        ),
        Fault(
            "sysctl",
            "kernel.sched_cfs_bandwidth_slice_us is 100000 instead of 5000",
            _setting,
            ("quota",),
            setting="sysctl / kernel.sched_cfs_bandwidth_slice_us",
            early=True,
        ),
    )
}
