"""The states of alerts: when they are told, how often, and that a restart tells nothing twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracer.alerts.alert import Condition, Countdown, Culprit, Severity, State, Subject
from tracer.alerts.engine import MOST_ALERTS, Engine, Identity
from tracer.alerts.record import alert_from, alert_record
from tracer.alerts.rule import Rule, View
from tracer.errors import RecordingError
from tracer.window import Window

SECOND = 1_000_000_000
IDENTITY = Identity("cu39", "b007", 1_700_000_000 * SECOND)
TABLE = ("cpustall", "open")
CPU3 = Subject("cpu", "3")


def _view(now_s: float, *, table=TABLE, losses=None) -> View:
    now_ns = int(now_s * SECOND)
    rows = np.zeros(0, dtype=[("cpu", "u4")])
    return View(now_ns, {table: Window(*table, now_ns - SECOND, now_ns, rows, losses or {})})


def _rule(holds, **settings) -> Rule:
    """Return a rule whose conditions are what ``holds`` has at the time."""
    return Rule("stuck", "stuck CPU", "", "look at it", lambda view: list(holds), (TABLE,), **settings)


def _condition(severity=Severity.WARNING, **more) -> Condition:
    return Condition(CPU3, severity, "CPU 3 is stuck", 5 * SECOND, **more)


def _states(alerts):
    return [alert.state for alert in alerts]


def test_it_is_told_once_it_has_held_for_long_enough():
    holds = [_condition()]
    engine = Engine([_rule(holds, for_ns=2 * SECOND)], IDENTITY)
    assert engine.judge(_view(10)) == [] and engine.judge(_view(11)) == []
    (alert,) = engine.judge(_view(12))
    assert (alert.state, alert.sequence, alert.began_ns) == (State.FIRING, 1, 5 * SECOND)
    assert alert.unix_ns == 12 * SECOND + IDENTITY.clock_offset_ns
    assert engine.judge(_view(13)) == []


def test_what_is_over_before_that_is_never_told():
    holds = [_condition()]
    engine = Engine([_rule(holds, for_ns=2 * SECOND)], IDENTITY)
    engine.judge(_view(10))
    holds.clear()
    assert engine.judge(_view(11)) == []
    holds.append(_condition())
    assert engine.judge(_view(12)) == []


def test_it_is_resolved_when_it_has_been_gone_for_long_enough():
    holds = [_condition()]
    engine = Engine([_rule(holds, keep_ns=3 * SECOND)], IDENTITY)
    (fired,) = engine.judge(_view(10))
    holds.clear()
    assert engine.judge(_view(11)) == []
    holds.append(_condition())
    assert engine.judge(_view(12)) == []  # back again: the same alert
    holds.clear()
    assert engine.judge(_view(14)) == []
    (resolved,) = engine.judge(_view(15))
    assert (resolved.state, resolved.id, resolved.sequence) == (State.RESOLVED, fired.id, 2)
    assert engine.firing == []


def test_a_rule_that_cannot_be_asked_resolves_nothing():
    engine = Engine([_rule([_condition()], keep_ns=SECOND)], IDENTITY)
    engine.judge(_view(10))
    assert engine.judge(_view(60, table=("napi", "poll"))) == []
    assert [alert.condition.subject for alert in engine.firing] == [CPU3]


def test_severity_rises_at_once_and_does_not_fall():
    holds = [_condition()]
    engine = Engine([_rule(holds)], IDENTITY)
    engine.judge(_view(10))
    holds[:] = [_condition(Severity.PAGE)]
    assert [alert.severity for alert in engine.judge(_view(11))] == [Severity.PAGE]
    holds[:] = [_condition(Severity.WARNING)]
    assert engine.judge(_view(12)) == []
    assert engine.firing[0].severity is Severity.PAGE


def test_it_is_told_again_while_it_lasts():
    engine = Engine([_rule([_condition()], again_ns=60 * SECOND)], IDENTITY)
    told = [second for second in range(10, 140) if engine.judge(_view(second))]
    assert told == [10, 70, 130]


def test_a_countdown_to_a_panic_that_is_no_longer_so_is_told():
    def panic(at_s: float) -> Countdown:
        return Countdown("soft lockup detector", int(at_s * SECOND), True)

    said = {10: panic(30), 12: panic(31), 15: None, 25: panic(60), 26: panic(61), 61.5: panic(70)}
    holds: list[Condition] = []
    engine, told, now = Engine([_rule(holds)], IDENTITY), [], None
    for step in range(20, 130):
        now = said.get(step / 2, now)
        holds[:] = [_condition(countdown=now)]
        told += [(step / 2, alert.says_panic) for alert in engine.judge(_view(step / 2))]
    # Taken back, but not at once; said again, at once; and run out.
    assert told == [(10, True), (20, False), (25, True), (60, True)]


def test_a_stack_that_comes_later_is_an_update_and_stays():
    holds = [_condition()]
    engine = Engine([_rule(holds)], IDENTITY)
    engine.judge(_view(10))
    culprit = Culprit("foo[1]", "softirq TIMER", ("spin", "run_timer"), "bad")
    holds[:] = [_condition(culprit=culprit)]
    (update,) = engine.judge(_view(11))
    assert (update.state, update.sequence, update.condition.culprit) == (State.FIRING, 2, culprit)
    holds[:] = [_condition()]
    engine.judge(_view(12))
    assert engine.firing[0].condition.culprit == culprit


def test_a_look_without_the_stack_does_not_forget_it():
    holds = [_condition(culprit=Culprit("foo[1]", "softirq TIMER", ("spin", "run_timer"), "bad"))]
    engine = Engine([_rule(holds)], IDENTITY)
    engine.judge(_view(10))
    holds[:] = [_condition(culprit=Culprit("foo[1]", "softirq TIMER"))]
    assert engine.judge(_view(11)) == [] and engine.firing[0].condition.culprit.module == "bad"
    holds[:] = [_condition(culprit=Culprit("foo[1]", "softirq TIMER", ("spin", "run_timer"), "bad"))]
    assert engine.judge(_view(12)) == []
    holds[:] = [_condition(culprit=Culprit("bar[2]"))]
    engine.judge(_view(13))
    assert engine.firing[0].condition.culprit.task == "bar[2]"


def test_losses_of_the_tables_behind_it_travel_along():
    engine = Engine([_rule([_condition()])], IDENTITY)
    (alert,) = engine.judge(_view(10, losses={"lost": 3, "late": 0}))
    assert alert.quality == {"lost": 3}


def test_a_rule_on_trial_says_so():
    engine = Engine([_rule([_condition()])], IDENTITY, shadow={"stuck"})
    assert [alert.shadow for alert in engine.judge(_view(10))] == [True]


def test_two_processes_give_one_occurrence_the_same_id():
    engines = [Engine([_rule([_condition()])], replace(IDENTITY, source=f"sentinel {n}")) for n in range(2)]
    first, second = (engine.judge(_view(10 + number))[0] for number, engine in enumerate(engines))
    assert first.id == second.id and first.source != second.source


def test_a_restart_goes_on_and_tells_nothing_twice():
    holds = [_condition()]
    rule = _rule(holds, keep_ns=SECOND)
    engine = Engine([rule], IDENTITY)
    (alert,) = engine.judge(_view(10))
    later = Engine([rule], IDENTITY)
    later.restore(engine.state(), 20 * SECOND)
    assert later.judge(_view(21)) == []
    holds.clear()
    assert _states(later.judge(_view(30))) == [State.RESOLVED]
    other = Engine([rule], replace(IDENTITY, boot_id="other"))
    other.restore(engine.state(), 20 * SECOND)
    assert other.firing == []
    assert alert.id


@pytest.mark.parametrize("state", [None, {}, {"firing": 3}, {"boot_id": "b007", "firing": [{"id": 3}]}])
def test_a_damaged_state_is_an_error(state):
    with pytest.raises(RecordingError):
        Engine([_rule([])], IDENTITY).restore(state, 0)


def test_there_is_an_end_to_what_it_keeps():
    many = [Condition(Subject("task", str(number)), Severity.INFO, "", 1) for number in range(MOST_ALERTS + 5)]
    engine = Engine([_rule(many)], IDENTITY)
    assert len(engine.judge(_view(10))) == MOST_ALERTS and engine.refused == 5


def test_the_countdown_says_what_the_kernel_will_do():
    panics = Countdown("soft lockup detector", 26 * SECOND, True)
    assert panics.told(10 * SECOND) == "panic in ≤ 16 s"
    assert replace(panics, panics=False).told(10 * SECOND) == "will be logged in ≤ 16 s, no panic"
    assert panics.told(30 * SECOND) == "panic any moment"


def test_records_are_read_back_as_they_were():
    culprit = Culprit("a[1]", "softirq NET_RX", ("f", "g"), "mlx5_core")
    condition = _condition(
        numbers={"stalled_s": 5.0}, culprit=culprit, countdown=Countdown("watchdog", 9 * SECOND, True, "x=1")
    )
    (alert,) = Engine([_rule([condition])], IDENTITY).judge(_view(10, losses={"lost": 1}))
    assert alert_from(alert_record(alert)) == alert


def test_hostile_records_are_refused():
    record = alert_record(Engine([_rule([_condition()])], IDENTITY).judge(_view(10))[0])
    for name, value in (
        ("summary", "x" * 5000), ("severity", "worst"), ("state", "?"), ("subject", None), ("began_ns", 1 << 70),
        ("numbers", {str(number): 1 for number in range(1000)}), ("quality", 7), ("sequence", "1"),
    ):  # fmt: skip
        with pytest.raises(RecordingError):
            alert_from({**record, name: value})
    for other in (None, [], "text", {}):
        with pytest.raises(RecordingError):
            alert_from(other)


def test_a_rule_that_fails_is_named_and_takes_no_other_along():
    def fails(view):
        raise ZeroDivisionError("by zero")

    broken = Rule("broken", "", "", "", fails, (TABLE,))
    engine = Engine([broken, _rule([_condition()])], IDENTITY)
    assert len(engine.judge(_view(10))) == 1
    assert engine.broken == {"broken": "ZeroDivisionError: by zero"}


def test_a_clock_that_was_set_is_the_next_alerts_clock():
    engine = Engine([_rule([_condition()], again_ns=SECOND)], IDENTITY)
    engine.judge(_view(10))
    engine.tell_time(7)
    assert engine.judge(_view(12))[0].unix_ns == 12 * SECOND + 7


def _pair(first, second, **more):
    """Return an engine of two rules that tell of one incident."""
    rules = [
        Rule(name, "", "", "", lambda view, holds=holds: list(holds), (TABLE,), echoes=(other,))
        for name, holds, other in (("age", first, "report"), ("report", second, "age"))
    ]
    return Engine(rules, IDENTITY, **more)


def test_one_incident_is_paged_once():
    first, second = [_condition(Severity.PAGE)], []
    engine = _pair(first, second)
    (paged,) = engine.judge(_view(10))
    second.append(_condition(Severity.PAGE))
    (echo,) = engine.judge(_view(20))
    assert (paged.rule, paged.severity) == ("age", Severity.PAGE)
    assert (echo.rule, echo.severity) == ("report", Severity.WARNING)
    first.clear()
    assert [alert.state for alert in engine.judge(_view(40))] == [State.RESOLVED, State.FIRING]
    assert [(alert.rule, alert.severity) for alert in engine.firing] == [("report", Severity.PAGE)]


def test_whoever_pages_first_goes_on_paging_and_a_page_on_trial_wakes_nobody():
    both = [_condition(Severity.PAGE)]
    engine = _pair([], both)
    engine.judge(_view(10))
    assert [alert.severity for alert in engine.judge(_view(311))] == [Severity.PAGE]
    engine = _pair(both, both, shadow=("age",))
    assert [alert.severity for alert in engine.judge(_view(10))] == [Severity.PAGE, Severity.PAGE]


def test_another_process_may_have_paged_it():
    asked = []

    def paged(rule, subject, now_ns):
        asked.append((rule, subject, now_ns))
        return True

    (alert,) = _pair([], [_condition(Severity.PAGE)], paged=paged).judge(_view(10))
    assert alert.severity is Severity.WARNING and asked == [("age", CPU3, 10 * SECOND)]


def test_what_goes_on_in_a_lesser_way_is_not_over():
    holds, lesser, asked = [_condition()], [_condition(numbers={"stalled_s": 1.0})], []

    def goes_on(view, before):
        asked.append(before.subject)
        return next(iter(lesser), None)

    engine = Engine([_rule(holds, keep_ns=0, goes_on=goes_on)], IDENTITY)
    engine.judge(_view(10))
    assert asked == [], "it is found"
    holds.clear()
    assert engine.judge(_view(11)) == [] and asked == [CPU3]
    assert [alert.condition.numbers for alert in engine.firing] == [{"stalled_s": 1.0}]
    lesser.clear()
    assert _states(engine.judge(_view(12))) == [State.RESOLVED]
    assert engine.judge(_view(13)) == [] and asked == [CPU3, CPU3], "nothing fires that could go on"
