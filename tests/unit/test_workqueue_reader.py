"""Pools that begin nothing and works that run on, from the maps; a worker that is idle is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracer.kernel.hungtasks import TaskStatus
from tracer.kernel.readers import workqueue
from tracer.layouts import layout
from tracer.probes.workqueue import PROBE

SECOND = 10**9
NOW = 1_000 * SECOND


class Node:
    def __init__(self) -> None:
        running = layout("workqueue", "workqueue_running")
        self.maps = {
            "workqueue_pools": np.zeros(16, layout("workqueue", "workqueue_pool")),
            "workqueue_workers": np.zeros(64, running),
            "workqueue_softirqs": np.zeros(2, running),
        }
        self.names: dict[int, bytes] = {}

    def pool(self, place: int, age_s: float, cpu: int, id: int) -> None:
        self.maps["workqueue_pools"][place] = (1, 5, NOW - int(age_s * SECOND), 0xF00, cpu, id, [0, 0, 0])

    def work(self, pid: int, age_s: float, cpu: int, name: bytes = b"kworker/1:2+events") -> None:
        self.maps["workqueue_workers"][pid % 64] = (NOW - int(age_s * SECOND), 0xBA2, pid, cpu, 0)
        self.names[pid] = name

    def status(self, pid: int) -> TaskStatus | None:
        return TaskStatus(self.names[pid], b"D", pid, 1) if pid in self.names else None

    def read(self) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
        session: Any = SimpleNamespace(
            array=self.maps.__getitem__, options=SimpleNamespace(constants={}), stack=lambda pid: b"schedule"
        )
        rows, losses = workqueue.Reader(session, PROBE).read(NOW)["open"]
        return rows[["kind", "cpu", "pool", "age_ns", "function", "pid"]].tolist(), losses


@pytest.fixture
def node(monkeypatch):
    node = Node()
    monkeypatch.setattr(workqueue, "task_status", node.status)
    monkeypatch.setattr(workqueue, "in_host_pids", lambda: True)
    return node


def test_a_calm_node_has_nothing_open(node):
    node.pool(0, 0.9, 1, 6)
    node.work(812, 9, 1)
    assert node.read() == ([], {"untold": 0, "stackless": 0})


def test_pools_first_and_oldest_first(node):
    node.pool(0, 2, 1, 6)
    node.pool(1, 8, -1, 8)
    node.work(900, 11, 0)
    assert node.read()[0] == [
        (b"pool", -1, 8, 8 * SECOND, 0xF00, 0),
        (b"pool", 1, 6, 2 * SECOND, 0xF00, 0),
        (b"work", 0, -1, 11 * SECOND, 0xBA2, 900),
    ]


def test_where_a_pool_is_stuck_younger_works_are_told_as_well(node):
    node.pool(0, 2, 1, 6)
    node.work(900, 3, 1)
    node.work(901, 3, 0)
    assert [row[5] for row in node.read()[0]] == [0, 900]


@pytest.mark.parametrize("name", [b"kworker/1:2-events", b"python3", None])
def test_a_worker_that_is_not_at_work_is_none(node, name):
    node.work(900, 30, 1)
    if name is None:
        del node.names[900]
    else:
        node.names[900] = name
    assert node.read()[0] == []


def test_a_work_in_a_softirq_has_no_worker(node):
    node.maps["workqueue_softirqs"][1] = (NOW - 20 * SECOND, 0xBA2, 4411, 1, 0)
    assert node.read()[0] == [(b"work", 1, -1, 20 * SECOND, 0xBA2, 0)]


def test_many_are_bounded_and_the_rest_counted(node):
    for pid in range(100, 160):
        node.work(pid, 30, 0)
    rows, losses = node.read()
    assert len(rows) == 16 and losses == {"untold": 44, "stackless": 0}
