"""What processes tell each other without waiting: what was delivered, how the kernel is set."""

from __future__ import annotations

import os
from dataclasses import replace

from unit.agent_samples import SECOND, an_alert

from tracer.agent.board import AGENT, Board
from tracer.alerts.alert import Countdown, Severity, State

NOW = 1_000 * SECOND


def test_what_was_delivered_is_known_for_that_sink_alone():
    board = Board()
    assert not board.is_told(0, an_alert(), NOW)
    board.mark_told(0, an_alert(), NOW)
    assert board.is_told(0, an_alert(), NOW + SECOND)
    assert not board.is_told(1, an_alert(), NOW)
    assert not board.is_told(0, an_alert(cpu=4), NOW)
    assert not board.is_told(0, replace(an_alert(), state=State.RESOLVED), NOW)


def test_better_news_is_news_and_worse_is_not():
    board = Board()
    told = an_alert(stack=())
    board.mark_told(0, told, NOW)
    for better in (an_alert(stack=("0xffffffff81000000",)), an_alert(severity=Severity.PAGE)):
        assert not board.is_told(0, better, NOW)
    board.mark_told(0, an_alert(stack=("0xffffffff81000000",)), NOW)
    assert board.is_told(0, told, NOW)
    assert not board.is_told(0, an_alert(stack=("spin",)), NOW), "names are better than addresses"
    board.mark_told(0, an_alert(severity=Severity.PAGE), NOW)
    assert board.is_told(0, an_alert(stack=("spin",)), NOW)


def test_a_countdown_that_is_taken_back_is_news_and_its_return_is():
    board = Board()
    soon = Countdown("soft lockup detector", NOW + SECOND, True)
    first, second = an_alert(), an_alert()
    counting = [replace(one, condition=replace(one.condition, countdown=soon)) for one in (first, second)]
    counting[1] = replace(counting[1], condition=replace(counting[1].condition, since_ns=6 * SECOND))
    for alert in (counting[0], first, counting[1]):
        assert not board.is_told(0, alert, NOW)
        board.mark_told(0, alert, NOW)
    assert all(board.is_told(0, alert, NOW) for alert in (counting[0], first, counting[1]))


def test_after_a_minute_it_is_a_reminder():
    board = Board()
    board.mark_told(0, an_alert(), NOW)
    assert not board.is_told(0, an_alert(), NOW + 61 * SECOND)


def test_what_anyone_sees_fire_is_held_until_that_one_says_it_is_over():
    board, over = Board(), replace(an_alert(), state=State.RESOLVED)
    board.hold(0, [], [an_alert()], NOW + SECOND)
    board.hold(AGENT, [], [an_alert()], NOW + SECOND)
    assert board.is_held(over, NOW) and not board.is_held(an_alert(cpu=4), NOW)
    board.hold(0, [over], [], NOW + SECOND)
    assert board.is_held(over, NOW)
    board.hold(AGENT, [over], [], NOW + SECOND)
    assert not board.is_held(over, NOW)
    board.hold(1, [], [an_alert()], NOW + SECOND)  # and freezes
    assert board.is_held(over, NOW) and not board.is_held(over, NOW + SECOND)


def test_many_marks_cost_the_oldest_only():
    board = Board()
    for cpu in range(20_000):
        board.mark_told(0, an_alert(cpu), NOW + cpu)
    assert board.is_told(0, an_alert(19_999), NOW + 20_000)
    assert sum(board.is_told(0, an_alert(cpu), NOW + 20_000) for cpu in range(19_000, 20_000)) > 950


def test_a_forked_process_sees_it():
    board = Board()
    child = os.fork()
    if not child:
        board.mark_told(0, an_alert(), NOW)
        board.sentinels[1]["beat_ns"] = NOW
        os._exit(0)
    os.waitpid(child, 0)
    assert board.is_told(0, an_alert(), NOW)
    assert board.sentinels["beat_ns"].tolist()[:3] == [0, NOW, 0]


def test_settings_arrive_whole_or_not_at_all():
    board = Board()
    child = os.fork()
    if not child:
        board.put_settings({"kernel.softlockup_panic": "1"})
        board.put_settings({"kernel.softlockup_panic": "0", "kernel.watchdog_thresh": "10"})
        os._exit(0)
    os.waitpid(child, 0)
    assert board.settings() == {"kernel.softlockup_panic": "0", "kernel.watchdog_thresh": "10"}
    board._control[0] += 1  # somebody died in the middle of a change
    board._memory[board._text_at : board._text_at + 4] = b"oops"
    assert board.settings()["kernel.watchdog_thresh"] == "10"


def test_settings_that_are_too_many_change_nothing():
    board = Board()
    board.put_settings({"a": "1"})
    board.put_settings({"a": "x" * 40_000})
    assert board.settings() == {"a": "1"}


def test_the_agents_pages_are_shown_once_they_may_be_sent_and_for_a_while():
    board, paged = Board(), an_alert(severity=Severity.PAGE)
    subject = paged.condition.subject
    board.put_pages([paged], [paged], NOW + SECOND)
    assert not board.is_paged("stuck", subject, NOW), "it may freeze before it is sent"
    board.put_pages([], [an_alert(), replace(paged, shadow=True)], NOW + SECOND)
    assert not board.is_paged("stuck", subject, NOW), "nobody is woken by these"
    board.put_pages([], [paged], NOW + SECOND)
    assert board.is_paged("stuck", subject, NOW) and not board.is_paged("other", subject, NOW)
    assert not board.is_paged("stuck", an_alert(cpu=4).condition.subject, NOW)
    assert not board.is_paged("stuck", subject, NOW + SECOND)
