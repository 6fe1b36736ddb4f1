"""Nothing is lost to a sink that blocks or to a process that freezes, and nothing waits for either."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.agent_samples import SECOND, FakeSink, an_alert

from tracer.agent.board import AGENT, Board
from tracer.agent.outbox import MOST_WAITING, Outbox
from tracer.alerts.alert import State

NOW = 1_000 * SECOND


def test_a_sink_that_blocks_gets_it_later_and_delays_no_other():
    blocked, other = FakeSink(takes=False), FakeSink()
    outbox = Outbox(Board(), [blocked, other])
    for cpu in range(3):
        outbox.put(an_alert(cpu), NOW)
    outbox.send(NOW)
    assert len(other.got) == 3 and not blocked.got
    blocked.takes = True
    outbox.send(NOW + 1)
    assert [alert.condition.subject.name for alert in blocked.got] == ["0", "1", "2"]
    assert len(other.got) == 3 and outbox.sent == 6


def test_two_processes_tell_a_shared_sink_once_and_their_own_twice():
    board, shared = Board(), FakeSink()
    owns = [FakeSink(), FakeSink()]
    first, second = (Outbox(board, [shared], [own]) for own in owns)
    for outbox in (first, second):
        outbox.put(an_alert(), NOW)
        outbox.send(NOW)
    assert len(shared.got) == 1
    assert [len(own.got) for own in owns] == [1, 1]


class Freezes(FakeSink):
    """Its process stops in the middle of sending, and nobody hears of it."""

    def send_now(self, alert):
        raise TimeoutError


def test_who_freezes_while_sending_keeps_nobody_from_it():
    board, shared = Board(), FakeSink()
    frozen, other = Outbox(board, [Freezes()]), Outbox(board, [shared])
    frozen.put(an_alert(), NOW)
    with pytest.raises(TimeoutError):
        frozen.send(NOW)
    other.put(an_alert(), NOW)
    other.send(NOW)
    assert len(shared.got) == 1


def test_the_second_in_line_waits_its_turn_for_shared_sinks_only():
    shared, own = FakeSink(), FakeSink()
    outbox = Outbox(Board(), [shared], [own])
    outbox.put(an_alert(), NOW, later_ns=20)
    outbox.send(NOW)
    assert (len(shared.got), len(own.got)) == (0, 1)
    assert outbox.due_ns(NOW) == NOW + 20
    outbox.send(NOW + 20)
    assert len(shared.got) == 1
    assert outbox.due_ns(NOW + 20) is None


def test_a_sentinel_ends_no_alert_that_another_process_sees_fire():
    board, shared = Board(), FakeSink()
    over = replace(an_alert(), state=State.RESOLVED)
    sentinel, agent = Outbox(board, [shared]), Outbox(board, [shared], decides=True)
    board.hold(AGENT, [], [an_alert()], NOW + SECOND)
    sentinel.put(over, NOW)
    sentinel.send(NOW)
    assert not shared.got and sentinel.due_ns(NOW) is None
    agent.put(over, NOW)
    agent.send(NOW)
    assert shared.got == [over]


def test_there_is_an_end_to_what_waits():
    sink = FakeSink(takes=False)
    outbox = Outbox(Board(), [sink])
    for cpu in range(MOST_WAITING + 10):
        outbox.put(an_alert(cpu), NOW)
    assert outbox.dropped == 10
    sink.takes = True
    outbox.send(NOW)
    assert sink.got[0].condition.subject.name == "10"
