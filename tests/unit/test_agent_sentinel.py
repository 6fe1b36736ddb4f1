"""A sentinel's turn: it looks, judges and sends; it ends with the agent, and knows whether that said goodbye."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from unit.agent_samples import SECOND, FakeSink, an_alert

from tracer.agent.board import Board
from tracer.agent.outbox import Outbox
from tracer.agent.sentinel import QUIET_NS, STAGGER_NS, TURN_NS, Sentinel
from tracer.agent.sight import Sight
from tracer.agent.warming import warm
from tracer.agent.wire import Wire
from tracer.alerts.alert import Condition, Severity, Subject
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import Rule, View
from tracer.kernel.readers import overdue
from tracer.layouts import layout
from tracer.probes.cpustall import PROBE
from tracer.sinks.text import JsonLines
from tracer.window import Window

IDENTITY = Identity("cu39", "b007", 0, "sentinel 0")
TABLE = ("cpustall", "open")
NOW = 10 * SECOND  # outboxes go by the real clock, which shows more than that on any machine


def _judge(view: View) -> Iterator[Condition]:
    for row in view.rows(*TABLE):
        yield Condition(Subject("cpu", str(row["cpu"])), Severity.PAGE, "stuck", 5 * SECOND)


RULE = Rule("stuck", "", "", "", _judge, (TABLE,), fast=True)


class Scene:
    """A sentinel, what it sees (``rows``), and both ends of its wire."""

    def __init__(self, number: int = 0) -> None:
        self.rows = np.zeros(0, dtype=[("cpu", "u4")])
        self.board, self.shared = Board(), FakeSink()
        self.agent, theirs = Wire.pair()
        self.wires = (self.agent, theirs)
        self.wakes, self.waker = os.pipe()
        self.due_ns = 1 << 62
        sight: Any = SimpleNamespace(look=self.look, due_ns=lambda now_ns: self.due_ns)
        outbox = Outbox(self.board, [self.shared], [theirs])
        self.sentinel = Sentinel(
            number, sight, Engine([RULE], IDENTITY), self.board, outbox, wakes=[self.wakes], wire=theirs
        )  # fmt: skip
        self.looks = 0

    def look(self, now_ns: int, settings: Any) -> View:
        self.looks += 1
        return View(now_ns, {TABLE: Window(*TABLE, now_ns, now_ns, self.rows)}, settings)

    def stuck(self) -> None:
        self.rows = np.zeros(1, dtype=self.rows.dtype)

    def close(self) -> None:
        for wire in self.wires:
            wire.close()
        for descriptor in (self.wakes, self.waker):
            os.close(descriptor)
        self.sentinel.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def test_it_tells_what_it_sees_and_that_it_lives(scene):
    scene.sentinel.turn(NOW)
    assert not scene.shared.got and scene.board.sentinels[0]["beat_ns"] == NOW
    scene.stuck()
    scene.sentinel.turn(NOW + 1)
    assert [alert.source for alert in scene.shared.got] == ["sentinel 0"]
    assert [kind for kind, _ in scene.agent.received()] == ["alert"]
    assert scene.board.sentinels[0]["told"] == 2


def test_its_alerts_go_by_a_clock_that_was_set_meanwhile(scene):
    scene.sentinel._offset = SimpleNamespace(moved=lambda: [7 * SECOND])
    scene.stuck()
    scene.sentinel.turn(NOW)
    (alert,) = scene.shared.got
    assert alert.unix_ns == NOW + 7 * SECOND


def test_after_a_pause_nothing_is_judged_but_what_is_still_so_at_the_next_turn(scene):
    scene.sentinel.turn(NOW)
    scene.sentinel.turn(NOW + TURN_NS)
    scene.stuck()
    scene.sentinel.turn(NOW + 5 * SECOND)
    assert scene.board.sentinels[0]["late"] == 1 and not scene.shared.got
    scene.sentinel.turn(NOW + 5 * SECOND + TURN_NS)
    assert len(scene.shared.got) == 1


def _run(scene: Scene, seconds: float, *, bye: bool = False) -> tuple[bool, float]:
    """Run it for so long, then end the agent; return what ``run`` says and how long its end took."""
    said: list[bool] = []
    thread = threading.Thread(target=lambda: said.append(scene.sentinel.run()))
    thread.start()
    time.sleep(seconds)
    if bye:
        scene.agent.say("bye")
    began = time.monotonic()
    scene.agent.close()
    thread.join(5)
    return said[0], time.monotonic() - began


@pytest.mark.parametrize("bye", [False, True])
def test_it_ends_with_the_agent_and_knows_how(scene, bye):
    said, seconds = _run(scene, 0.5, bye=bye)
    assert said is bye and seconds < 0.15
    assert 2 <= scene.looks <= 3, "one look every 500 ms, and a last one"


def test_in_quiet_times_it_looks_when_something_may_be_due(scene):
    now = time.monotonic_ns()
    for due_ns, next_ns in ((now + 35_000_000, 35_000_000), (now + 350_000_000, 350_000_000), (now + SECOND, QUIET_NS)):
        scene.due_ns = due_ns
        scene.sentinel.turn(now)
        assert scene.sentinel._turn_at_ns == now + next_ns
    scene.stuck()
    scene.sentinel.turn(now)
    assert scene.sentinel._turn_at_ns == now + TURN_NS, "while it lasts"
    scene.sentinel.turn(now + 5 * SECOND)
    assert scene.sentinel._turn_at_ns == now + 5 * SECOND + TURN_NS, "after a pause the next turn judges"


def test_a_storm_of_events_is_taken_in_gulps(scene):
    os.write(scene.waker, b"x")  # readable for good
    _run(scene, 0.5)
    assert 10 <= scene.looks <= 45


def test_the_second_sentinel_speaks_only_if_the_first_did_not():
    second = Scene(1)
    second.stuck()
    now = time.monotonic_ns()
    second.sentinel.turn(now)
    assert not second.shared.got and [kind for kind, _ in second.agent.received()] == ["alert"]
    time.sleep(STAGGER_NS / 1e9)
    second.sentinel.turn(time.monotonic_ns())
    assert len(second.shared.got) == 1
    second.close()


class _Session:
    """Four idle CPUs and a ring without events."""

    def __init__(self) -> None:
        self.maps = {
            "cpus": np.zeros(4, layout("cpustall", "cpu_row")),
            "cpustall_rows": np.zeros(4, layout("cpustall", "cpustall_row")),
        }
        self.probes, self.shapes, self.options = [PROBE], self.maps, SimpleNamespace(constants={})
        self.told: list[Any] = []

    def array(self, name: str) -> np.ndarray:
        return self.maps[name]

    def sorted(self, read: Any) -> list[Any]:
        told, self.told = self.told, []
        return told


STALLS = ("cpustall", "stalls")


def _sight() -> tuple[_Session, Sight]:
    session: Any = _Session()
    rule = Rule("stuck", "", "", "", lambda view: (), (TABLE,), wants=(STALLS, ("memory", "use")), history=(STALLS,))
    ring: Any = SimpleNamespace(read=lambda: ())
    return session, Sight(session, ring, [rule], lambda address: (hex(address), ""))


def test_it_sees_events_for_a_second_and_what_is_open():
    session, sight = _sight()
    assert set(sight.look(NOW, {}).windows) == {TABLE, STALLS}
    event = np.zeros(1, layout("cpustall", "cpustall_stalls"))
    event["event"]["time_ns"], event["event"]["cpu"], event["since_ns"], event["comm"] = NOW, 2, NOW - SECOND, b"spin"
    table = next(table for table in PROBE.tables if table.name == "stalls")
    session.told = [(PROBE, table, event)]
    session.maps["cpustall_rows"]["since_ns"][2] = NOW - 2 * SECOND
    session.maps["cpustall_rows"]["seen_ns"][2] = NOW
    view = sight.look(NOW, {"kernel.panic": "0"})
    assert view.rows(*STALLS)["comm"].tolist() == [b"spin"] and view.settings == {"kernel.panic": "0"}
    assert view.rows(*TABLE)[["cpu", "kind", "age_ns"]].tolist() == [(2, b"stall", 2 * SECOND)]
    (earlier,) = sight.look(NOW + SECOND - 1, {}).history[STALLS]
    assert earlier.rows["comm"].tolist() == [b"spin"]
    assert len(sight.look(NOW + SECOND - 1, {}).rows(*STALLS)) == 1
    assert len(sight.look(NOW + SECOND, {}).rows(*STALLS)) == 0
    assert sight.due_ns(NOW) == NOW + SECOND, "what is overdue already was seen"
    session.maps["cpus"]["softirq_entered_ns"][1] = NOW - SECOND // 4
    assert sight.due_ns(NOW) == NOW + SECOND * 3 // 4
    session.told = [(PROBE, table, event)]  # one that waited while this process was held up
    late = sight.look(NOW + 5 * SECOND, {})
    assert len(late.rows(*STALLS)) == 0 and len(late.history[STALLS]) == 2
    assert sight.look(NOW + 606 * SECOND, {}).history[STALLS] == []


def test_it_asks_no_task():
    session: Any = _Session()
    session.shapes = {**session.maps, "runqueue_sets": None}
    overdue.Reader(session, PROBE, tasks=False)
    with pytest.raises(KeyError):
        overdue.Reader(session, PROBE)


def test_a_rehearsal_goes_through_everything_and_reaches_nobody():
    read_end, write_end = os.pipe()
    sink = JsonLines("json", write_end)
    ours, theirs = Wire.pair()
    rehearsed = []

    def look(now_ns: int) -> View:
        rehearsed.append(now_ns - time.monotonic_ns())
        return View(now_ns, {TABLE: Window(*TABLE, 0, 0, np.zeros(1, dtype=[("cpu", "u4")]))})

    warm(IDENTITY, [sink, theirs], look, [RULE])
    assert max(rehearsed) > 30 * SECOND, "it looked ahead"
    os.set_blocking(read_end, False)
    with pytest.raises(BlockingIOError):
        os.read(read_end, 1)
    assert list(ours.received()) == []
    # Afterwards both lead where they did.
    assert sink.send_now(an_alert()) and os.read(read_end, 4096).startswith(b"{")
    assert theirs.send_now(an_alert()) and len(list(ours.received())) == 1
    for end in (ours, theirs, sink):
        end.close()
    os.close(read_end)
