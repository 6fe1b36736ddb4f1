"""When the kernel acts, from its settings: known cases of known kernels."""

from __future__ import annotations

import pytest

from tracer.alerts import deadlines
from tracer.alerts.rule import View

SECOND = 1_000_000_000
DEFAULTS = {
    "kernel.soft_watchdog": "1",
    "kernel.nmi_watchdog": "1",
    "kernel.watchdog_thresh": "10",
    "kernel.softlockup_panic": "0",
    "kernel.hardlockup_panic": "0",
    "kernel.hung_task_timeout_secs": "120",
    "kernel.hung_task_panic": "0",
    "kernel.panic_on_rcu_stall": "0",
    "rcupdate.rcu_cpu_stall_timeout": "21",
    "workqueue.watchdog_thresh": "30",
    "vm.panic_on_oom": "0",
}


def view(**changes: object) -> View:
    """Return the defaults of a distribution's kernel, changed; ``_`` stands for the first dot, None takes one away."""
    settings = dict(DEFAULTS)
    for name, value in changes.items():
        name = name.replace("__", ".", 1)
        settings[name] = str(value)
        if value is None:
            del settings[name]
    return View(0, {}, settings)


def seconds(budget: deadlines.Budget) -> tuple[float | None, float | None]:
    return tuple(None if ns is None else round(ns / SECOND, 1) for ns in (budget.logs_ns, budget.panics_ns))


@pytest.mark.parametrize(
    ("thresh", "panic", "logs", "panics"),
    [
        (10, 0, 24, None),
        (10, 1, 24, 24),  # 6.1 in a guest: "stuck for 22s" and panic
        (10, 2, 24, 48),  # v7.0: twice the threshold is seen at the 12th timer
        (1, 1, 3.6, 3.6),  # 3 units of 1.07 s, so the 9th timer of 0.4 s
        (60, 1, 144, 144),
    ],
)
def test_soft_lockup(thresh, panic, logs, panics):
    budget = deadlines.soft_lockup(view(kernel__watchdog_thresh=thresh, kernel__softlockup_panic=panic))
    assert seconds(budget) == (logs, panics)
    assert budget.setting == f"kernel.softlockup_panic={panic}, kernel.watchdog_thresh={thresh}"


@pytest.mark.parametrize(
    ("thresh", "page_s"), [(1, 0.6), (2, 1.2), (3, 1.8), (5, 3), (8, 4.8), (9, 5), (10, 5), (30, 5), (60, 5)]
)
def test_a_page_comes_at_a_quarter_of_the_soonest_report_or_at_5_s(thresh, page_s):
    # Counted in whole units of 2^30 ns, 2 * thresh of them may be over at the sixth timer: 2.4 s at a thresh of 1.
    budget = deadlines.soft_lockup(view(kernel__watchdog_thresh=thresh))
    assert budget.quarter_ns(5 * SECOND) == int(page_s * SECOND)
    assert budget.soonest_ns is not None and budget.soonest_ns * 10 == 24 * thresh * SECOND


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kernel__soft_watchdog": 0}, "kernel.soft_watchdog=0"),
        ({"kernel__watchdog_thresh": 0}, "kernel.watchdog_thresh=0"),
        ({"kernel__watchdog": 0}, "kernel.watchdog=0"),
        ({"kernel__soft_watchdog": None}, "this kernel has no kernel.soft_watchdog"),
    ],
)
def test_a_watchdog_that_is_off_has_no_countdown(changes, why):
    budget = deadlines.soft_lockup(view(kernel__softlockup_panic=1, **changes))
    assert (budget.why, budget.countdown(5)) == (why, None)
    assert budget.quarter_ns(5 * SECOND) == 5 * SECOND and budget.remark == f"; no countdown: {why}"


def test_the_soft_lockup_is_counted_from_the_last_feed():
    now = view(kernel__softlockup_panic=1)
    # Stalled at 100 s, and the watchdog's timer first went without its thread at 103 s: it was fed at 99 s.
    assert deadlines.last_fed_ns(now, 100 * SECOND, 103 * SECOND) == 99 * SECOND
    assert deadlines.last_fed_ns(now, 100 * SECOND, 0) == 100 * SECOND
    assert deadlines.last_fed_ns(now, 100 * SECOND, 0, fed_ns=97 * SECOND) == 97 * SECOND
    # Where it has been idle since, the count begins with that timer: a guest's panic came 25.8 s after a stall began.
    assert deadlines.last_fed_ns(now, 100 * SECOND, 103 * SECOND, idle_ns=100 * SECOND) == 103 * SECOND
    assert deadlines.last_fed_ns(now, 100 * SECOND, 103 * SECOND, idle_ns=98 * SECOND) == 99 * SECOND
    assert deadlines.last_fed_ns(now, 100 * SECOND, 0, idle_ns=99 * SECOND) == 104 * SECOND
    assert deadlines.last_fed_ns(now, 100 * SECOND, 0, fed_ns=97 * SECOND, idle_ns=99 * SECOND) == 101 * SECOND
    # What was fed longer ago than a period says nothing of the next timer.
    assert deadlines.last_fed_ns(now, 100 * SECOND, 0, fed_ns=90 * SECOND, idle_ns=89 * SECOND) == 100 * SECOND


def test_what_is_told():
    countdown = deadlines.soft_lockup(view(kernel__softlockup_panic=1)).countdown(100 * SECOND)
    assert countdown and countdown.told(108 * SECOND) == "panic in ≤ 16 s"
    only_logged = deadlines.soft_lockup(view()).countdown(100 * SECOND)
    assert only_logged and only_logged.told(108 * SECOND) == "will be logged in ≤ 16 s, no panic"


@pytest.mark.parametrize(("panic", "panics"), [(0, None), (1, 24)])
def test_hard_lockup(panic, panics):
    assert seconds(deadlines.hard_lockup(view(kernel__hardlockup_panic=panic))) == (24, panics)
    assert deadlines.hard_lockup(view(kernel__nmi_watchdog=0)).why == "kernel.nmi_watchdog=0"


@pytest.mark.parametrize(
    ("changes", "blocked", "expected"),
    [
        ({}, 1, (240, None)),
        ({"kernel__hung_task_panic": 1}, 1, (240, 240)),
        ({"kernel__hung_task_panic": 1, "kernel__hung_task_check_interval_secs": 10}, 1, (130, 130)),
        ({"kernel__hung_task_panic": 1, "kernel__hung_task_check_interval_secs": 50}, 1, (200, 200)),
        ({"kernel__hung_task_check_interval_secs": 500}, 1, (240, None)),
        ({"kernel__hung_task_panic": 3}, 2, (240, None)),
        ({"kernel__hung_task_panic": 3}, 3, (240, 240)),
        ({"kernel__hung_task_timeout_secs": 0}, 1, (None, None)),
        ({"kernel__hung_task_timeout_secs": None}, 1, (None, None)),
    ],
)
def test_hung_task(changes, blocked, expected):
    assert seconds(deadlines.hung_task(view(**changes), blocked)) == expected


@pytest.mark.parametrize(
    ("changes", "seen", "expected"),
    [
        ({}, 0, (21.1, None)),
        ({"kernel__panic_on_rcu_stall": 1}, 0, (21.1, 21.1)),
        ({"kernel__panic_on_rcu_stall": 1, "kernel__max_rcu_stall_to_panic": 1}, 0, (21.1, 21.1)),
        ({"kernel__panic_on_rcu_stall": 1, "kernel__max_rcu_stall_to_panic": 2}, 0, (21.1, 84.4)),
        ({"kernel__panic_on_rcu_stall": 1, "kernel__max_rcu_stall_to_panic": 2}, 1, (21.1, 21.1)),
        ({"rcupdate__rcu_cpu_stall_timeout": 1}, 0, (3.1, None)),
        ({"rcupdate__rcu_cpu_stall_suppress": 1}, 0, (None, None)),
    ],
)
def test_rcu_stall(changes, seen, expected):
    assert seconds(deadlines.rcu_stall(view(**changes), seen)) == expected


@pytest.mark.parametrize(
    ("changes", "seen", "expected"),
    [
        ({}, 0, (60, None)),
        ({"workqueue__panic_on_stall": 1}, 0, (60, 60)),
        ({"workqueue__panic_on_stall": 3}, 0, (60, 120)),
        ({"workqueue__panic_on_stall": 3}, 2, (60, 60)),
        ({"workqueue__panic_on_stall_time": 45}, 0, (60, 90)),
        ({"workqueue__panic_on_stall": 9, "workqueue__panic_on_stall_time": 45}, 0, (60, 90)),
        ({"workqueue__watchdog_thresh": None}, 0, (None, None)),
    ],
)
def test_workqueue(changes, seen, expected):
    assert seconds(deadlines.workqueue(view(**changes), seen)) == expected


@pytest.mark.parametrize("detector", ["soft_lockup", "hard_lockup", "hung_task", "rcu_stall", "workqueue"])
def test_without_settings_there_is_no_countdown_and_that_is_said(detector):
    budget = getattr(deadlines, detector)(View(0, {}))
    assert budget.countdown(0) is None
    assert budget.remark == "; no countdown: the kernel's settings are not known yet"


def test_oom_panics_only_when_told_to():
    assert seconds(deadlines.oom(view(), 90 * SECOND)) == (90, None)
    assert seconds(deadlines.oom(view(vm__panic_on_oom=2), 90 * SECOND)) == (90, 90)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kernel__panic": 10}, "reboots after 10 s"),
        ({"kernel__panic": 0}, "hangs for ever (kernel.panic=0)"),
        ({"kernel__panic": -1}, "reboots at once"),
        ({"kernel__panic": 10, "kernel__kexec_crash_loaded": 1}, "boots the crash kernel"),
    ],
)
def test_what_follows_a_panic(changes, told):
    assert deadlines.after_panic(view(**changes)) == told


def test_nonsense_in_a_setting_is_the_default():
    assert seconds(deadlines.soft_lockup(view(kernel__watchdog_thresh="ten"))) == (24, None)
