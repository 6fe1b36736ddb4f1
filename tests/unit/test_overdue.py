"""What is open too long is told from another CPU; what only looks open is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracer.kernel.readers import overdue
from tracer.layouts import constants, layout
from tracer.probes.cpustall import PROBE

NOW = 1_000 * 10**9
SECOND = 10**9
TIME_BITS, SET_BITS = constants("runqueue")["RUNQUEUE_TIME_BITS"], constants("runqueue")["RUNQUEUE_SET_BITS"]


class Node:
    """Four CPUs that have just switched to a task, as the maps show them."""

    def __init__(self) -> None:
        self.maps = {
            "cpus": np.zeros(4, layout("cpustall", "cpu_row")),
            "cpustall_rows": np.zeros(4, layout("cpustall", "cpustall_row")),
            "runqueue_sets": np.zeros(1 << SET_BITS, layout("runqueue", "runqueue_set")),
        }
        self.cpus, self.stalls = self.maps["cpus"], self.maps["cpustall_rows"]
        self.cpus["switches"] = 33
        self.stay["started_ns"], self.stay["pid"], self.stay["comm"] = NOW - 1000, 7, b"busy"
        self.stalls["heartbeat_ns"] = NOW - 1000

    @property
    def stay(self) -> np.ndarray:
        return self.cpus["stays"][:, 1]

    def wait(self, pid: int, since_ns: int) -> None:
        word = ((pid >> SET_BITS) + 1) << TIME_BITS | since_ns
        self.maps["runqueue_sets"]["ways"][pid & ((1 << SET_BITS) - 1), 2] = word

    def reader(self) -> overdue.Reader:
        session: Any = SimpleNamespace(
            array=self.maps.__getitem__, shapes=self.maps, options=SimpleNamespace(constants={})
        )
        return overdue.Reader(session, PROBE)

    def open(self) -> list[tuple[int, bytes, float]]:
        return told(self.reader())


def told(reader: overdue.Reader) -> list[tuple[int, bytes, float]]:
    rows = reader.read(NOW)["open"][0]
    return [(int(row["cpu"]), row["kind"], row["age_ns"] / SECOND) for row in rows]


@pytest.fixture
def node(monkeypatch):
    monkeypatch.setattr(overdue, "undisturbed", lambda: {3})
    return Node()


def test_nothing_is_open_on_a_healthy_node(node):
    assert node.open() == []


@pytest.mark.parametrize("kind", ["softirq", "hardirq"])
def test_interrupts_that_do_not_end(node, kind):
    node.stay["started_ns"] = NOW - 9 * SECOND
    node.cpus[f"{kind}_entered_ns"] = [NOW - 3 * SECOND, NOW - 5 * SECOND, NOW - 1000, 0]
    assert node.open() == [(1, kind.encode(), 5), (0, kind.encode(), 3)]


def test_what_is_open_says_when_the_cpu_was_last_idle_and_its_watchdog_fed(node):
    node.stay["started_ns"] = NOW - 3 * SECOND
    node.cpus["softirq_entered_ns"][2] = NOW - 2 * SECOND
    node.cpus["idle_until_ns"][2], node.stalls["fed_ns"][2] = NOW - 4 * SECOND, NOW - 6 * SECOND
    (row,) = node.reader().read(NOW)["open"][0]
    assert (row["fed_ns"], row["idle_ns"]) == (NOW - 6 * SECOND, NOW - 4 * SECOND)


def test_no_interrupt_is_open_across_a_switch(node):
    node.cpus["softirq_entered_ns"] = NOW - 3 * SECOND
    assert node.open() == []


def test_heartbeats_of_busy_cpus_that_tick(node):
    node.stay["started_ns"] = NOW - 9 * SECOND
    node.stay["pid"][1] = 0
    node.stalls["heartbeat_ns"] = NOW - 2 * SECOND
    assert node.open() == [(0, b"heartbeat", 2), (2, b"heartbeat", 2)]


def test_a_stall_counts_once_two_samples_saw_it(node):
    node.stalls["since_ns"] = NOW - 4 * SECOND
    node.stalls["seen_ns"] = [NOW - 1000, NOW - 4 * SECOND + 1000, 0, NOW]
    assert node.open() == [(0, b"stall", 4), (3, b"stall", 4)]


def test_tasks_that_wait(node, monkeypatch):
    tasks = {20_000: (b"R", 2, b"late"), 7: (b"R", 0, b"runs"), 9: (b"S", 0, b"sleeps"), 10: (b"", 0, b"")}
    monkeypatch.setattr(overdue, "_task", tasks.__getitem__)
    for pid in tasks:
        node.wait(pid, NOW - 3 * SECOND)
    node.wait(11, NOW - 1000)
    node.wait(12, NOW + 1000)
    rows = node.reader().read(NOW)["open"][0]
    assert rows[["cpu", "kind", "age_ns", "pid", "comm"]].tolist() == [(2, b"runnable", 3 * SECOND, 20_000, b"late")]


def test_a_wait_that_is_over_is_looked_up_once(node, monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(overdue, "_task", lambda pid: asked.append(pid) or (b"S", 0, b""))
    node.wait(9, NOW - 3 * SECOND)
    reader = node.reader()
    assert told(reader) == told(reader) == []
    assert asked == [9]
    node.wait(9, NOW + SECOND)
    reader.read(NOW + 2 * SECOND)
    reader.read(NOW + 4 * SECOND)
    assert asked == [9, 9]


def test_waits_are_looked_through_when_one_can_be_overdue(node, monkeypatch):
    monkeypatch.setattr(overdue, "_task", lambda pid: (b"R", 1, b"late"))
    reader = node.reader()
    looks: list[int] = []
    old = reader._waits._old
    reader._waits._old = lambda now_ns, threshold_ns: looks.append(now_ns) or old(now_ns, threshold_ns)
    found = []
    for second in range(7):
        if second == 2:
            node.wait(9, NOW + SECOND + 1)
        rows = reader.read(NOW + second * SECOND)["open"][0]
        found += [second for kind in rows["kind"] if kind == b"runnable"]
    assert found == [3, 4, 5, 6]  # after its first second, and then every time
    assert [(at - NOW) // SECOND for at in looks] == [0, 2, 3, 4, 5, 6]


def test_untraced_cpus_are_left_alone(node, monkeypatch):
    monkeypatch.setattr(overdue, "_task", lambda pid: (b"R", 1, b"runs there"))
    node.cpus["untraced"][1] = 1
    node.wait(9, NOW - 3 * SECOND)
    assert node.open() == []


def test_of_one_stall_the_latest_word_counts():
    events = np.zeros(3, layout("cpustall", "cpustall_stalls"))
    events["since_ns"], events["duration_ns"], events["vector"] = [1, 1, 2], [10, 20, 5], 3
    events["evidence"] = constants("cpustall")["CPUSTALL_SOFTIRQ"] | constants("cpustall")["CPUSTALL_NEED_RESCHED"]
    rows = PROBE.tables[2].decode(events, SimpleNamespace(cgroup_of=lambda pid: b""))
    assert rows[["since_ns", "duration_ns", "context"]].tolist() == [
        (1, 20, b"softirq NET_RX"),
        (2, 5, b"softirq NET_RX"),
    ]
