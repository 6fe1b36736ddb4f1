"""Sentinels are forked, heard, missed, replaced and relieved; these ones only say that they are there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from unit.agent_samples import SECOND, an_alert

from tracer.agent import crew as module
from tracer.agent import placing
from tracer.agent.board import Board
from tracer.agent.crew import Crew
from tracer.agent.wire import Wire

CPUS = (0, 1)
#: What reaches a whole group at once.
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
ONLINE = frozenset({0, 1, 2})


def _serve(number: int, cpu: int, wire: Wire, session: Any, duty: Any, board: Board) -> NoReturn:
    # The others' ends came along with the fork.
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != wire.fileno():
            try:
                os.close(int(name))
            except OSError:
                continue
    wire.say("ready", ["nothing"])
    wire.say("note", f"on CPU {cpu}")
    wire.send_now(an_alert(number))
    try:
        while True:
            list(wire.received())
            board.sentinels[number]["beat_ns"] = time.monotonic_ns()
            time.sleep(0.005)
    finally:
        os._exit(0)


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def crew(monkeypatch, board) -> Iterator[Crew]:
    monkeypatch.setattr(module, "serve", _serve)
    monkeypatch.setattr(module, "rehearse", lambda *given: None)
    monkeypatch.setattr(placing, "housekeeping", lambda: ONLINE)
    nothing: Any = None
    made = Crew(nothing, nothing, board, CPUS)
    yield made
    made.close()
    assert [post.pid for post in made.posts] == [0, 0]


def _heard(crew: Crew, alerts: int) -> tuple[list[Any], list[str]]:
    found: tuple[list[Any], list[str]] = ([], [])
    until = time.monotonic() + 10
    while len(found[0]) < alerts and time.monotonic() < until:
        for all_of, some in zip(found, crew.received(), strict=True):
            all_of += some
        time.sleep(0.01)
    assert len(found[0]) >= alerts, found[1]
    return found


def _watch(crew: Crew, seconds: float = 0.0, *, online: frozenset[int] = ONLINE) -> list[str]:
    return crew.watch(time.monotonic_ns() + int(seconds * SECOND), online)


def test_all_are_heard(crew):
    alerts, notes = _heard(crew, 2)
    assert sorted(alerts, key=lambda alert: alert.condition.subject.name) == [an_alert(0), an_alert(1)]
    assert sorted(notes) == ["sentinel 0: on CPU 0", "sentinel 1: on CPU 1"]
    assert all(post.ready and post.lacks == ("nothing",) for post in crew.posts)
    assert len(crew.descriptors()) == 2


def test_a_dead_one_is_missed_and_replaced_but_not_at_once(crew):
    _heard(crew, 2)
    first = crew.posts[0].pid
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert crew.received()[1] == [f"sentinel 0 on CPU 0 (pid {first}) died"]
    assert _watch(crew) == []
    assert "sentinel 0 runs again, on CPU 0" in _watch(crew, 6)
    assert crew.posts[0].pid not in (0, first)
    assert _heard(crew, 1)[0] == [an_alert(0)]


def test_one_that_dies_again_and_again_waits_ever_longer(crew):
    _heard(crew, 2)
    crew.posts[0].deaths = 3
    os.kill(crew.posts[0].pid, signal.SIGKILL)
    time.sleep(0.1)
    crew.received()
    _watch(crew, 39)
    assert crew.posts[0].pid == 0
    assert _watch(crew, 41)[0] == "sentinel 0 runs again, on CPU 0"


def test_a_silent_one_is_told_once_and_when_it_is_back(crew, board):
    _heard(crew, 2)
    os.kill(crew.posts[1].pid, signal.SIGSTOP)
    time.sleep(0.05)
    board.sentinels[1]["beat_ns"] = crew.posts[1].forked_ns = time.monotonic_ns() - 3 * SECOND
    assert [note[:40] for note in _watch(crew)] == ["sentinel 1 on CPU 1 has not run for 3.0 "]
    assert _watch(crew) == []
    os.kill(crew.posts[1].pid, signal.SIGCONT)
    time.sleep(0.1)
    assert _watch(crew) == ["sentinel 1 on CPU 1 runs again"]


def test_one_whose_cpu_goes_offline_moves(crew):
    _heard(crew, 2)
    crew.posts[1].forked_ns -= 10 * SECOND
    notes = _watch(crew, online=frozenset({0, 2}))
    assert notes[0] == "sentinel 1: CPU 1 went offline"


def test_signals_are_held_back_until_a_sentinel_ignores_them(monkeypatch, board):
    seen, theirs = os.pipe()
    fork = os.fork

    def forked() -> int:
        pid = fork()
        if not pid:
            os.write(theirs, b"%d" % (signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= ENDING))
        return pid

    def serve(*given: Any) -> NoReturn:
        os.write(theirs, b"%d" % all(signal.getsignal(number) is signal.SIG_IGN for number in ENDING))
        os._exit(0)

    monkeypatch.setattr(os, "fork", forked)
    monkeypatch.setattr(module, "serve", serve)
    monkeypatch.setattr(module, "rehearse", lambda *given: None)
    nothing: Any = None
    crew = Crew(nothing, nothing, board, CPUS)
    assert b"".join(os.read(seen, 1) for _ in range(4)) == b"1111"
    assert not ENDING & signal.pthread_sigmask(signal.SIG_BLOCK, ())
    crew.close()
    os.close(seen)
    os.close(theirs)


def test_it_does_not_wait_for_one_that_does_not_end(crew):
    _heard(crew, 2)
    os.kill(crew.posts[0].pid, signal.SIGSTOP)
    began = time.monotonic()
    crew.close()
    assert time.monotonic() - began < 3


def test_one_that_can_not_be_forked_is_said_and_tried_again(crew, monkeypatch):
    _heard(crew, 2)
    os.kill(crew.posts[0].pid, signal.SIGKILL)
    time.sleep(0.1)
    crew.received()

    fork = os.fork

    def refuse() -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    assert "sentinel 0 can't be forked: Resource temporarily unavailable" in _watch(crew, 6)
    monkeypatch.setattr(os, "fork", fork)
    assert "sentinel 0 runs again, on CPU 0" in _watch(crew, 20)
