"""The selftest's judgement: a wrong number fails, an unknown one is skipped, every probe has checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracer.commands.selftest import _as_text, _exit_code
from tracer.histogram import SLOTS
from tracer.kernel.counts import Counts
from tracer.probes import all_probes
from tracer.selftest import Check, Evidence, all_checks
from tracer.selftest import hardirq as hardirq_checks
from tracer.selftest import ledger as ledger_checks
from tracer.selftest import offcpu as offcpu_checks
from tracer.selftest import oncpu as oncpu_checks
from tracer.selftest import rcu as rcu_checks
from tracer.selftest import runqueue as runqueue_checks
from tracer.selftest._evidence import Scene, Span
from tracer.window import Window
from tracer.workloads import Places

HOG, VICTIM = 100, 200
WORST = np.dtype([("pid", "u4"), ("wait_ns", "u8"), ("holder_pid", "u4"), ("holder_comm", "S16")])


def scene(name: str, tables: dict[str, np.ndarray], told: dict, switches: int = 0) -> Scene:
    windows = {("runqueue", table): Window("runqueue", table, 0, 10**9, rows) for table, rows in tables.items()}
    before, after = (Counts(number, {}, {}, {}, 0, {}) for number in (0, switches))
    return Scene(name, windows, (before, before), (after, after), told, {"hog": HOG, "victim": VICTIM})


def evidence(
    *,
    waits: int = 10_000,
    wait_ns: int = 200_000_000,
    late_ns: int = 200_000_000,
    holder: int = HOG,
    priority: str = "fifo",
) -> Evidence:
    worst = np.array([(VICTIM, wait_ns, holder, b"hog")], dtype=WORST)
    told = {"hog": {"priority": priority}, "victim": {"worst_ns": late_ns}}
    slots = np.zeros(1, dtype=[("slots", "u4", (SLOTS,))])
    slots["slots"][0, 50] = waits
    scenes = {
        "hog": scene("hog", {"worst": worst}, told),
        "pipes": scene("pipes", {"wait": slots}, {}, switches=20_000),
    }
    return Evidence({}, scenes, Places(1, (0,)), 2, ["runqueue"])


def statuses(**changes) -> list[str]:
    return [check.status for check in runqueue_checks.check(evidence(**changes))]


def test_right_numbers_pass():
    assert statuses() == ["PASS", "PASS"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"holder": VICTIM}, ["FAIL", "PASS"]),
        ({"wait_ns": 170_000_000}, ["FAIL", "PASS"]),
        ({"late_ns": 267_000_000}, ["PASS", "PASS"]),
        ({"late_ns": 267_000_000, "wait_ns": 230_000_000}, ["FAIL", "PASS"]),
        ({"late_ns": 150_000_000}, ["FAIL", "PASS"]),
        ({"waits": 9_999}, ["PASS", "FAIL"]),
        ({"waits": 20_001}, ["PASS", "FAIL"]),
        ({"priority": "nice"}, ["SKIP", "PASS"]),
    ],
)
def test_wrong_numbers_fail_and_missing_privileges_skip(changes, expected):
    assert statuses(**changes) == expected


def sleeps(counted: int, *, unseen: int) -> str:
    # By two wakers; and the wait for its go.
    rows = [(VICTIM, 7, number, number * 100_000_000) for number in (counted - 1, 1)] + [(VICTIM, 8, 1, 10**9)]
    samples = np.array(rows, [("tid", "u4"), ("stack", "u4"), ("count", "u8"), ("weight", "u8")])
    windows = {
        ("offcpu", "samples"): Window("offcpu", "samples", 0, 10**9, samples),
        ("cpustate", "check"): Window("cpustate", "check", 0, 10**9, np.zeros(0), {"unseen": unseen}),
    }
    told = {"sleeper": {"sleeps": 15, "slept_ns": 1_610_000_000, "cpu_ns": 100_000_000}}
    played = replace(scene("sleep", {}, told), windows=windows, pids={"sleeper": VICTIM})
    (check,) = offcpu_checks.check(Evidence({}, {"sleep": played}, Places(1, (0,)), 2, ["offcpu"]))
    return check.status


def test_sleeps_may_be_missing_as_far_as_the_kernel_hid_switches():
    counted = [(15, 0), (14, 0), (14, 1), (13, 1), (16, 1)]
    assert [sleeps(number, unseen=unseen) for number, unseen in counted] == ["PASS", "FAIL", "PASS", "FAIL", "FAIL"]


def test_the_hogs_time_is_judged_by_the_kernels_clock_of_it_not_by_what_it_knows_itself():
    times = np.zeros(1, [("pid", "u4"), ("running_ns", "u8"), ("softirq_ns", "u8"), ("hardirq_ns", "u8")])
    times["pid"], times["running_ns"], times["hardirq_ns"] = HOG, 1_150_000_000, 30_000_000
    windows = {
        ("ledger", name): Window("ledger", name, 0, 10**9, rows)
        for name, rows in (("time", times), ("taken", times[:0]))
    }

    def status(used_ns: int) -> str:
        told = {"hog": {"priority": "ordinary", "cpu_ns": 10**9, "used_ns": used_ns}}
        played = replace(scene("hog", {}, told), windows=windows)
        return next(ledger_checks.check(Evidence({}, {"hog": played}, Places(1, (0,)), 2, ["ledger"]))).status

    assert [status(used_ns) for used_ns in (1_180_000_000, 1_000_000_000)] == ["PASS", "FAIL"]


def grace(waits: int, wait_ns: int, *, age_ns: int = 0, timeout: bytes = b"10") -> str:
    rows = np.zeros(1, [("state", "S16"), ("age_ns", "u8"), ("sum", "u8"), ("slots", "u4", (SLOTS,))])
    rows["sum"], rows["age_ns"] = waits * wait_ns, age_ns
    rows["slots"][0, 50] = waits
    played = replace(scene("spin", {}, {}), windows={("rcu", "grace"): Window("rcu", "grace", 0, 16 * 10**9, rows)})
    settings = np.array([(b"rcupdate.rcu_cpu_stall_timeout", timeout)], [("name", "S48"), ("value", "S16")])
    opening = {("detectors", "settings"): Window("detectors", "settings", 0, 1, settings)}
    (check,) = rcu_checks.check(Evidence(opening, {"spin": played}, Places(1, (0,)), 2, ["rcu"]))
    return check.status


def test_grace_periods_may_take_as_long_as_the_kernel_lets_them():
    assert [grace(2, 10**7), grace(1, 10**7)] == ["PASS", "FAIL"]
    # A busy node: below what its kernel calls a stall, and as many as there was time for.
    assert [grace(1, 4 * 10**9), grace(1, 11 * 10**9), grace(1, 11 * 10**9, timeout=b"21")] == ["PASS", "FAIL", "PASS"]
    assert [grace(0, 0, age_ns=9 * 10**9), grace(0, 0, age_ns=12 * 10**9)] == ["PASS", "FAIL"]


def interrupts(counted: int, *, unseen: int = 0, folded: int = 0, line: bool = False) -> str:
    irq, name = (5, "5") if line else (1_000_236, "LOC")
    rows = np.zeros(1, [("irq", "i4"), ("name", "S32"), ("none_count", "u8"), ("slots", "u4", (SLOTS,))])
    rows["irq"], rows["name"], rows["slots"][0, 50] = irq, name.encode(), counted
    made = np.array([(10_000, 10_000 - unseen)], [("made", "u8"), ("seen", "u8")])
    cost = np.zeros(0, [("program", "S32"), ("recursion_misses", "u8")])
    windows = {
        ("hardirq", "run"): Window("hardirq", "run", 0, 10**9, rows, {"folded": folded}),
        ("cpustate", "check"): Window("cpustate", "check", 0, 10**9, made, {"unseen": unseen}),
        ("agent", "cost"): Window("agent", "cost", 0, 10**9, cost),
    }
    before, after = (
        Counts(0, {}, {name: number, "TLB": 0}, {name: 1} if line else {}, 0, {}) for number in (0, 10_000)
    )
    played = Scene("spin", windows, (before, before), (after, after), {}, {})
    (check,) = hardirq_checks.check(Evidence({}, {"spin": played}, Places(1, (0,)), 2, ["hardirq"]))
    return check.status


def test_interrupts_may_be_missing_as_far_as_the_kernel_hid_events_or_rows_ran_out():
    assert [interrupts(10_000), interrupts(9_900)] == ["PASS", "FAIL"]
    assert [interrupts(9_900, unseen=50), interrupts(9_700, unseen=50)] == ["PASS", "FAIL"]
    assert interrupts(9_000, unseen=9_000) == "FAIL"
    assert [interrupts(9_900, folded=100), interrupts(9_800, folded=100)] == ["PASS", "FAIL"]


def test_a_lines_handler_may_run_more_often_than_the_kernel_counts():
    assert [interrupts(10_400, line=True), interrupts(10_600, line=True)] == ["PASS", "FAIL"]
    assert interrupts(10_400) == "FAIL"


def test_a_span_is_held_with_slack_at_both_ends():
    span = Span(10, 20)
    assert [span.holds(number, slack=1) for number in (8, 9, 21, 22)] == [False, True, True, False]
    assert [Span(10_000, 10_000).holds(number) for number in (9_989, 9_990, 10_010, 10_011)] == [
        False,
        True,
        True,
        False,
    ]


def test_every_probe_has_checks():
    assert all_checks().keys() == all_probes().keys()


@pytest.mark.parametrize(
    ("statuses", "code"),
    [(["PASS", "SKIP"], 0), (["PASS", "FAIL"], 1), (["SKIP", "SKIP"], 3)],
)
def test_exit_codes(statuses, code):
    assert _exit_code([("runqueue", Check(status, "")) for status in statuses]) == code


def test_what_runs_without_the_kernel_is_not_enough():
    assert _exit_code([("netdev", Check("PASS", "")), ("runqueue", Check("SKIP", ""))]) == 3


def test_fits_80_columns_and_escapes_names():
    check = Check("PASS", "waited 1 s behind \x1b[31mred", "hog, " + "word " * 30)
    text = _as_text([("runqueue_cgroup", replace(check))])
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_among_strange_pids_who_is_who_is_not_judged():
    strange = replace(evidence(), host_pids=False)
    assert next(runqueue_checks.check(strange)).status == "SKIP"
    for checks in (offcpu_checks, oncpu_checks):
        assert [check.status for check in checks.check(strange)] == ["SKIP"]
