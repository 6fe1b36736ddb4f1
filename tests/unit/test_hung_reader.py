"""Words of sleeping tasks become rows; those that outlived their sleep, and those of the future, do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracer.kernel import hungtasks
from tracer.kernel.hungtasks import TaskStatus
from tracer.kernel.readers import hung
from tracer.layouts import constants, layout
from tracer.probes.hung import PROBE

SECOND = 10**9
NOW = 10_000 * SECOND
KNOWN = constants("hung")


class Node:
    """Sleeping tasks: their words, and what /proc says of them."""

    def __init__(self) -> None:
        self.sets = np.zeros(KNOWN["HUNG_SETS"], layout("hung", "hung_set"))
        self.tasks: dict[int, TaskStatus] = {}
        self.before: list[list[int]] = []
        self.asked: list[int] = []
        self.timeout = 120
        self.answers = True

    def sleep(self, pid: int, age_s: float, *, state: bytes = b"D", killable: bool = False, way: int = 0) -> None:
        tag = (pid >> KNOWN["HUNG_SET_BITS"]) + 1 << KNOWN["HUNG_TAG_BITS"]
        since = (NOW - int(age_s * SECOND)) & (1 << KNOWN["HUNG_TIME_BITS"]) - 1
        place = pid & KNOWN["HUNG_SETS"] - 1
        self.sets["ways"][place, way] = tag | int(killable) << KNOWN["HUNG_KILLABLE_BIT"] | since
        self.tasks[pid] = TaskStatus(b"task", state, pid, 7)

    def status(self, pid: int) -> TaskStatus | None:
        self.asked.append(pid)
        return self.tasks.get(pid)

    def stack(self, pid: int) -> bytes | None:
        return b"[<0>] schedule+0x1f/0xa0\n[<0>] wait_%d+0x2/0x9 [nfs]\n" % pid if self.answers else None

    def reader(self) -> hung.Reader:
        session: Any = SimpleNamespace(
            array={"hung_sets": self.sets}.__getitem__, options=SimpleNamespace(constants={}), stack=self.stack
        )
        return hung.Reader(session, PROBE)


@pytest.fixture
def node(monkeypatch):
    node = Node()
    monkeypatch.setattr(hung, "task_status", node.status)
    monkeypatch.setattr(hung, "in_host_pids", lambda: True)
    monkeypatch.setattr(hung, "blocked_tasks", lambda seconds: iter(node.before))
    monkeypatch.setattr(hung, "Kept", lambda path: SimpleNamespace(number=lambda: node.timeout, close=lambda: None))
    return node


def rows(reader: hung.Reader, now_ns: int = NOW) -> np.ndarray:
    return reader.read(now_ns)["blocked"][0]


def test_old_sleeps_are_listed_oldest_first(node):
    node.sleep(4411, 30)
    node.sleep(9, 70, killable=True)
    node.sleep(70_000, 11)
    node.sleep(5, 9)
    found = rows(node.reader())
    assert found[["pid", "age_ns", "counted"]].tolist() == [
        (9, 70 * SECOND, b"no"), (4411, 30 * SECOND, b"yes"), (70_000, 11 * SECOND, b"yes"),
    ]  # fmt: skip
    assert found["since_ns"].tolist() == [NOW - 70 * SECOND, NOW - 30 * SECOND, NOW - 11 * SECOND]
    assert found["stack"][0] == b"schedule;wait_9 [nfs]"


def test_the_highest_pid_keeps_its_number(node):
    node.sleep((1 << 22) - 1, 20)
    assert rows(node.reader())["pid"].tolist() == [(1 << 22) - 1]


def test_a_word_of_the_future_is_not_old(node):
    node.sleep(5, -2)
    assert not len(rows(node.reader()))


def test_a_shorter_timeout_of_the_kernel_lists_earlier(node):
    node.sleep(5, 3)
    node.timeout = 8
    assert len(rows(node.reader()))
    node.timeout = 0
    assert not len(rows(node.reader()))


@pytest.mark.parametrize("state", [b"S", b"R", b"I"])
def test_a_word_that_outlived_its_sleep_is_looked_up_once(node, state):
    node.sleep(5, 30, state=state)
    reader = node.reader()
    assert not len(rows(reader)) and not len(rows(reader, NOW + SECOND))
    assert node.asked == [5]
    node.sleep(5, -2)
    assert rows(reader, NOW + 12 * SECOND)["pid"].tolist() == [5]


def test_a_task_that_is_gone_is_no_row(node):
    node.sleep(5, 30)
    del node.tasks[5]
    assert not len(rows(node.reader()))


def test_tasks_that_slept_before_are_as_old_as_the_trace(node):
    node.before = [[], [12]]
    node.tasks[12] = TaskStatus(b"nfsd", b"D", 12, 3)
    reader = node.reader()
    assert not len(rows(reader)) and not len(rows(reader, NOW + 9 * SECOND))
    (row,) = rows(reader, NOW + 11 * SECOND)
    assert (row["pid"], row["counted"], row["since_ns"], row["age_ns"]) == (12, b"unknown", NOW, 11 * SECOND)
    # It has woken up and sleeps again: not the same sleep.
    node.tasks[12] = TaskStatus(b"nfsd", b"D", 12, 4)
    assert not len(rows(reader, NOW + 12 * SECOND)) and not len(rows(reader, NOW + 13 * SECOND))


def test_a_word_replaces_what_was_found_in_proc(node):
    node.before = [[12]]
    node.tasks[12] = TaskStatus(b"nfsd", b"D", 12, 3)
    reader = node.reader()
    rows(reader)
    node.sleep(12, -5)
    (row,) = rows(reader, NOW + 20 * SECOND)
    assert (row["counted"], row["age_ns"]) == (b"yes", 15 * SECOND)


def test_look_ups_are_bounded_and_the_rest_counted(node):
    for pid in range(1, 1001):
        node.sleep(pid, 100 + pid / 100)
    reader = node.reader()
    found, losses = reader.read(NOW)["blocked"]
    assert len(found) == len(node.asked) == 32
    assert losses == {"untold": 968, "stackless": 0, "foreign": 0}
    # Stacks come a few at a time, and stay.
    assert np.count_nonzero(found["stack"]) == 8
    assert np.count_nonzero(rows(reader)["stack"]) == 16
    assert found["pid"][0] == 1000


def test_a_stack_without_answer_is_counted_and_asked_for_again(node):
    node.sleep(5, 30)
    node.answers = False
    reader = node.reader()
    found, losses = reader.read(NOW)["blocked"]
    assert found["stack"][0] == b"" and losses["stackless"] == 1
    node.answers = True
    found, losses = reader.read(NOW + SECOND)["blocked"]
    assert found["stack"][0] == b"schedule;wait_5 [nfs]" and losses["stackless"] == 0


def test_in_another_pid_namespace_nobody_is_named(node, monkeypatch):
    monkeypatch.setattr(hung, "in_host_pids", lambda: False)
    node.sleep(5, 30)
    found, losses = node.reader().read(NOW)["blocked"]
    assert not len(found) and losses["foreign"] == 1


def test_a_scan_of_the_detector_is_seen_by_its_switches(monkeypatch):
    switches = iter([5, 5, 6, 6])
    monkeypatch.setattr(hungtasks, "_find_detector", lambda: 30)
    status = "Name:\tkhungtaskd\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t9{}\n"
    monkeypatch.setattr(
        hungtasks,
        "Kept",
        lambda path: SimpleNamespace(read=lambda: status.format(next(switches), path).encode(), number=lambda: None),
    )
    detector = hungtasks.Detector()
    assert [detector.read(at)[0] for at in (1, 2, 3, 4)] == [0, 0, 3, 3]


def test_words_are_looked_through_when_one_can_be_old_enough(node):
    node.sleep(5, 4)
    reader = node.reader()
    looks: list[int] = []
    sleeps = reader._words.sleeps
    reader._words.sleeps = lambda now_ns: looks.append(now_ns) or sleeps(now_ns)
    found = {second: rows(reader, NOW + second * SECOND)["pid"].tolist() for second in range(9)}
    assert [second for second in found if found[second]] == [6, 7, 8]
    assert [(at - NOW) // SECOND for at in looks] == [0, 6, 7, 8]
