"""Stalled, deaf and starving CPUs: when it is said, how bad, who did it, and until when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from unit.alert_views import SECOND, SETTINGS, judged, opened, stalls, view
from unit.synthetic import histogram

from tracer.agent.lookout import kernel_side
from tracer.alerts.alert import Severity, State
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import View
from tracer.alerts.rules import rules

STACK = [0x10, 0x20, 0x30]
SINCE = 100 * SECOND


def stall(seconds: float, **more: Any) -> dict[str, Any]:
    """Return a row of a stall of CPU 1 that began at 100 s."""
    values: dict[str, Any] = {"cpu": 1, "since_ns": SINCE, "duration_ns": int(seconds * SECOND), "pid": 812}
    values |= {"time_ns": SINCE + int(seconds * SECOND), "comm": b"insmod", "context": b"softirq TIMER", "stack": STACK}
    return {**values, **more}


def seen(seconds: float, kind: bytes = b"stall", *told: dict[str, Any], **settings: Any) -> View:
    """Return what is seen ``seconds`` after CPU 1 was held up: what is open, and the events told."""
    row = {"cpu": 1, "kind": kind, "age_ns": int(seconds * SECOND), "pid": 812, "comm": b"insmod", "vector": 1}
    tables = {"cpustall.open": opened(row), "cpustall.stalls": stalls(*told)}
    return view(100 + seconds, tables, settings={name.replace("__", "."): value for name, value in settings.items()})


@pytest.mark.parametrize(
    ("seconds", "severity"), [(1.0, Severity.WARNING), (4.9, Severity.WARNING), (5.0, Severity.PAGE)]
)
def test_a_stall_is_suspected_at_1_s_and_pages_at_5(seconds, severity):
    (found,) = judged("soft-lockup", seen(seconds, b"stall", stall(seconds)))
    assert (found.severity, str(found.subject), found.since_ns) == (severity, "CPU 1", SINCE)


def test_what_is_said():
    (found,) = judged("soft-lockup", seen(5.2, b"stall", stall(5.2)))
    assert found.summary == "CPU 1 has made no progress for 5.2 s: softirq TIMER in spin_fn [lab_mod]"
    culprit = found.culprit
    assert culprit and (culprit.task, culprit.module) == ("insmod[812]", "lab_mod")
    assert culprit.stack == ("delay_tsc", "spin_fn", "call_timer_fn")
    assert found.countdown and found.countdown.told(105_200_000_000) == "panic in ≤ 18.8 s"


def test_without_a_module_the_function_that_does_more_than_wait_is_named():
    (found,) = judged("soft-lockup", seen(2, b"stall", stall(2, context=b"kernel code", stack=[0x40, 0x50, 0x30])))
    assert found.summary.endswith("kernel code in ext4_writepages") and found.culprit and found.culprit.module == ""


def test_code_without_a_name_is_told_as_its_address():
    (found,) = judged("soft-lockup", seen(2, b"stall", stall(2, context=b"kernel code", stack=[0x10, 0xFFC0, 0x30])))
    assert found.summary.endswith("kernel code in 0xffc0")


@pytest.mark.parametrize(
    ("thresh", "none_s", "warns_s", "pages_s"),
    [(1, 0.59, None, 0.6), (2, 0.99, 1.0, 1.2), (5, 0.99, 1.0, 3.0), (10, 0.99, 4.9, 5.0), (60, 0.99, 4.9, 5.0)],
)
def test_a_page_is_there_at_a_quarter_of_the_budget_or_5_s(thresh, none_s, warns_s, pages_s):
    def severities(seconds):
        found = judged("soft-lockup", seen(seconds, b"stall", stall(seconds), kernel__watchdog_thresh=thresh))
        return [condition.severity for condition in found]

    assert severities(none_s) == [] and severities(pages_s) == [Severity.PAGE]
    assert warns_s is None or severities(warns_s) == [Severity.WARNING]
    # The kernel side and the rule that looks at what is open speak from then on as well.
    assert kernel_side({**SETTINGS, "kernel.watchdog_thresh": str(thresh)}) == {
        "CPUSTALL_THRESHOLD_NS": min(SECOND, round(0.6 * thresh * SECOND))
    }


def test_the_countdown_is_from_the_last_feed():
    # The watchdog's timer first went without its thread at 102 s, so it was fed at 98 s: 24 s later is 122 s.
    (found,) = judged("soft-lockup", seen(3, b"stall", stall(3, feed_ns=SECOND)))
    assert found.countdown and (found.countdown.latest_ns, found.countdown.panics) == (122 * SECOND, True)
    assert found.numbers["unfed_s"] == pytest.approx(1)
    # Over the idle task the count begins with that timer.
    (found,) = judged("soft-lockup", seen(3, b"stall", stall(3, feed_ns=SECOND, pid=0, comm=b"swapper/1")))
    assert found.countdown and found.countdown.latest_ns == 126 * SECOND


def test_a_cpu_that_was_idle_shortly_before_has_until_after_the_next_timer():
    row = {"cpu": 1, "kind": b"stall", "age_ns": 2 * SECOND, "pid": 812, "comm": b"insmod"}
    open_rows = opened({**row, "fed_ns": SINCE - 3 * SECOND, "idle_ns": SINCE - SECOND})
    (found,) = judged("soft-lockup", view(102, {"cpustall.open": open_rows, "cpustall.stalls": stalls(stall(2))}))
    assert found.countdown and found.countdown.latest_ns == SINCE + (1 + 24) * SECOND
    # A recording of before has no such columns.
    old = open_rows[["cpu", "kind", "age_ns", "pid", "comm", "vector"]]
    (found,) = judged("soft-lockup", view(102, {"cpustall.open": old, "cpustall.stalls": stalls(stall(2))}))
    assert found.countdown and found.countdown.latest_ns == SINCE + 24 * SECOND


def test_where_others_ended_by_themselves_a_stall_counts_down_once_it_lasts_longer():
    earlier = stalls(
        stall(3.9, since_ns=SINCE - 20 * SECOND, time_ns=SINCE - 16 * SECOND),
        stall(7.2, since_ns=SINCE - 10 * SECOND, time_ns=SINCE - 2 * SECOND),
        stall(9.9, since_ns=SINCE - 30 * SECOND, time_ns=SINCE - 20 * SECOND, cpu=2),
    )

    def found(seconds: float, **more: Any):
        tables = seen(seconds, b"stall", stall(seconds, **more)).windows
        now = view(100 + seconds, {}, history={"cpustall.stalls": [earlier, tables["cpustall", "stalls"].rows]})
        (one,) = judged("soft-lockup", replace(now, windows=tables))
        return one

    assert found(6).countdown is None and found(6).severity is Severity.PAGE
    assert "; no countdown yet: 2 others in the last 10 min ended, after 7.2 s and less" in found(6).summary
    assert found(8.5).countdown
    # The watchdog goes unfed for longer than this stall lasts: the others count as well.
    assert found(6, feed_ns=7 * SECOND).countdown


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kernel__softlockup_panic": 0}, "will be logged in ≤ 21 s, no panic"),
        ({"kernel__softlockup_panic": 2}, "panic in ≤ 45 s"),
        ({"kernel__soft_watchdog": 0}, None),
        ({"kernel__watchdog_cpumask": "0,2-7"}, None),
    ],
)
def test_what_the_settings_make_of_it(settings, said):
    (found,) = judged("soft-lockup", seen(3, b"stall", stall(3), **settings))
    assert (found.countdown and found.countdown.told(103 * SECOND)) == said
    assert ("no countdown" in found.summary) == (said is None)


def test_a_softirq_over_idle_that_only_another_cpu_sees():
    row = {"cpu": 1, "kind": b"softirq", "age_ns": 6 * SECOND, "pid": 0, "comm": b"swapper/1", "vector": 3}
    (found,) = judged("soft-lockup", view(106, {"cpustall.open": opened(row)}))
    assert found.severity is Severity.PAGE and found.culprit and found.culprit.context == "softirq NET_RX"
    assert found.countdown and found.countdown.latest_ns == (100 + 4 + 24) * SECOND


def test_every_process_that_sees_it_gives_it_the_same_id():
    """A sentinel sees the event, another only what is open, the agent both and later: one alert id."""
    views = [
        seen(1.0, b"stall", stall(1.0)),
        view(101.5, {"cpustall.open": opened(), "cpustall.stalls": stalls(stall(1.0))}),
        seen(1.234567891, b"stall"),
        seen(1.234567891, b"softirq"),
        seen(7, b"stall", stall(6.8)),
    ]
    alerts = []
    for number, each in enumerate(views):
        engine = Engine([rules()["soft-lockup"]], Identity("cu39", "b007", 0, f"sentinel {number}"))
        alerts += engine.judge(each)
    assert len(alerts) == len(views) and len({alert.id for alert in alerts}) == 1
    assert alerts[0].began_ns == SINCE


def test_a_stall_from_its_first_sign_to_its_end():
    engine = Engine([rules()["soft-lockup"]], Identity("cu39", "b007", 0))
    told = [alert for second in range(1, 9) for alert in engine.judge(seen(second, b"stall", stall(second)))]
    assert [(alert.state, alert.severity) for alert in told] == [
        (State.FIRING, Severity.WARNING),
        (State.FIRING, Severity.PAGE),
    ]
    over = [alert for second in range(9, 30) for alert in engine.judge(view(100 + second, {"cpustall.open": opened()}))]
    assert [alert.state for alert in over] == [State.RESOLVED]


@pytest.mark.parametrize("kind", [b"heartbeat", b"hardirq"])
def test_a_cpu_without_interrupts_pages_at_2_5_s(kind):
    assert judged("hard-lockup", seen(2.4, kind)) == []
    (found,) = judged("hard-lockup", seen(2.5, kind))
    assert (found.severity, found.since_ns) == (Severity.PAGE, SINCE)
    assert found.summary.startswith("CPU 1 has taken no interrupt for 2.5 s: ") and "insmod[812]" in found.summary
    assert found.countdown and found.countdown.latest_ns == 124 * SECOND
    assert judged("soft-lockup", seen(2.5, kind)) == []


def test_where_the_kernel_has_no_hard_lockup_detector_it_is_told_all_the_same():
    (found,) = judged("hard-lockup", seen(3, b"heartbeat", kernel__nmi_watchdog=0))
    assert found.countdown is None and found.summary.endswith("no countdown: kernel.nmi_watchdog=0")


def test_a_watchdog_that_was_fed_late():
    rows = histogram([("cpu", "u4")], {(0,): [20_000], (1,): [20_000, 4_700_000_000]})
    (found,) = judged("watchdog-unfed", view(50, {"cpustall.feed": rows}))
    assert str(found.subject) == "CPU 1" and found.severity is Severity.WARNING
    assert found.numbers["late_s"] == pytest.approx(4.7, rel=0.1)
    healthy = histogram([("cpu", "u4")], {(cpu,): [20_000, 500_000] for cpu in range(8)})
    assert judged("watchdog-unfed", view(50, {"cpustall.feed": healthy})) == []


@pytest.mark.parametrize(("seconds", "severity"), [(4, None), (6, Severity.WARNING), (21, Severity.PAGE)])
def test_a_task_that_starves(seconds, severity):
    found = judged("runnable-starved", seen(seconds, b"runnable"))
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert judged("soft-lockup", seen(seconds, b"runnable")) == judged("hard-lockup", seen(seconds, b"runnable")) == []


def test_many_that_starve_on_one_cpu_are_one_alert():
    rows = [{"cpu": 1, "kind": b"runnable", "age_ns": (6 + n) * SECOND, "pid": n, "comm": b"w"} for n in range(40)]
    (found,) = judged("runnable-starved", view(200, {"cpustall.open": opened(*rows)}))
    assert "w[39] has been ready for 45 s" in found.summary and "39 others" in found.summary


def test_busy_polling_and_compiles_are_no_stall():
    """Their windows: nothing told, waits of tenths of seconds at most, the watchdog fed in microseconds."""
    rows = [{"cpu": cpu, "kind": b"runnable", "age_ns": SECOND, "pid": 9, "comm": b"cc1"} for cpu in range(8)]
    tables = {"cpustall.open": opened(*rows), "cpustall.stalls": stalls()}
    tables["cpustall.feed"] = histogram([("cpu", "u4")], {(cpu,): [30_000, 800_000] for cpu in range(8)})
    calm = view(500, tables)
    assert [judged(name, calm) for name in ("soft-lockup", "hard-lockup", "watchdog-unfed", "runnable-starved")] == [
        [], [], [], [],
    ]  # fmt: skip


def test_the_fast_rules_need_nothing_that_a_sentinel_has_not():
    fast = [rule for rule in rules().values() if rule.fast]
    assert {"soft-lockup", "hard-lockup"} <= {rule.name for rule in fast}
    bare = view(101, {"cpustall.open": opened(), "cpustall.stalls": stalls()})
    for rule in fast:
        if rule.name in ("soft-lockup", "hard-lockup"):
            assert {probe for probe, _ in (*rule.needs, *rule.wants)} == {"cpustall"}
            # Of what has happened a sentinel keeps events.
            assert {*rule.history} <= {("cpustall", "stalls")}
            assert list(rule.judge(replace(bare, settings={}))) == []


def test_names_from_the_node_are_kept_as_they_are():
    (found,) = judged("soft-lockup", seen(2, b"stall", stall(2, comm=b"\x1b[31m\xff", stack=[])))
    assert found.culprit and found.culprit.task == "\x1b[31m\udcff[812]"
    assert np.isfinite(found.numbers["stalled_s"])
