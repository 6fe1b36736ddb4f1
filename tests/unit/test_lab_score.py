"""The panic lab's scores, from lines with known answers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.vm.kept import keep, kept
from tests.vm.page import page, results
from tests.vm.receiver import Line
from tests.vm.scenarios import SCENARIOS
from tests.vm.score import Run

_SECOND = 1_000_000_000
_PANIC = "[   64.8] Kernel panic - not syncing: softlockup: hung tasks"


def _alert(
    at_s: float,
    rule: str = "soft-lockup",
    *,
    left_s: float | None = 20,
    frame: str = "spin_in_softirq",
    severity: str = "warning",
    state: str = "firing",
) -> Line:
    # The node's clock is an hour behind the receiver's.
    record: dict[str, Any] = {
        "id": rule,
        "state": state,
        "severity": severity,
        "rule": rule,
        "summary": "CPU 1 stuck",
        "headline": "CPU 1 stuck; panic",
    }
    record["at_ns"] = int((at_s + 3600) * _SECOND)
    record["culprit"] = {"task": "swapper/1[0]", "context": "softirq TIMER", "module": "", "stack": [frame]}
    if left_s is not None:
        record["countdown"] = {"panics": True, "latest_ns": record["at_ns"] + int(left_s * _SECOND)}
    return Line(int(at_s * _SECOND), "alerts", json.dumps(record))


def _run(*lines: Line, scenario: str = "softirq-lockup", last_record: float = 1023.5) -> Run:
    fault = Line(0, "guest", "lab: fault 1000.0")
    panic = Line(24 * _SECOND, "console", _PANIC)
    silent = replace(_alert(27, "silent-node", left_s=None))
    in_order = sorted([fault, *lines, panic, silent], key=lambda line: line.at_ns)
    return Run(SCENARIOS[scenario], "6.1", tuple(in_order), {"last_record_unix_s": last_record, "alerts": [1]})


def test_a_run_that_meets_every_goal():
    run = _run(_alert(1.2, left_s=23))
    assert (run.alert_s, run.panic_s, run.lead_s) == pytest.approx((1.2, 24, 22.8))
    assert run.countdown_error == pytest.approx(0.2 / 22.8)
    assert (run.silent_s, run.box_s) == pytest.approx((3, 0.5))
    assert list(run.misses()) == []
    assert "1.2 s (5%), soft-lockup | yes | ≤ 23.0 s (+1%) | 24.0 s | 22.8 s | met" in results([run])


@pytest.mark.parametrize(
    ("lines", "missed"),
    [
        ((), "no alert"),
        ((_alert(1, "memory-exhaustion"),), "no alert"),
        ((_alert(25),), "no alert"),
        ((_alert(7, left_s=17),), "alert after 29% of the time"),
        ((_alert(1, left_s=30),), "countdown +30%"),
        ((_alert(1, left_s=18),), "countdown -22%"),
        ((_alert(1, left_s=None),), "no countdown"),
        ((_alert(1, left_s=23, frame="delay_tsc"),), "spin_in_softirq not named"),
    ],
)
def test_every_goal_can_be_missed(lines, missed):
    assert list(_run(*lines).misses()) == [missed]


def test_a_slope_is_scored_by_the_latest_word_half_way():
    scenario = replace(SCENARIOS["softirq-lockup"], countdown="slope", quarter=False)
    run = replace(_run(_alert(2, left_s=100), _alert(11, left_s=14), _alert(20, left_s=0.5)), scenario=scenario)
    assert run.countdown_error == pytest.approx(1 / 12)


def test_without_a_precursor_the_black_box_counts():
    run = replace(_run(last_record=1000), scenario=replace(SCENARIOS["null-dereference"], panic="hung tasks"))
    assert list(run.misses()) == ["the black box has not the last interval"]


def test_where_nothing_happens_a_page_is_a_false_alarm():
    fault, end = Line(0, "guest", "lab: fault 1000.0"), Line(600 * _SECOND, "guest", "lab: over")
    told = [_alert(9, "runqueue"), _alert(20, "soft-lockup", severity="page")]
    calm = Run(SCENARIOS["calm"], "6.1", (fault, told[0], end), {})
    assert list(calm.misses()) == [] and "| runqueue |  |  | none |  | met |" in results([calm])
    assert list(replace(calm, lines=(fault, *told, end)).misses()) == ["false alarms: soft-lockup"]


def test_a_panic_that_was_said_and_did_not_come_is_a_miss():
    fault, end = Line(0, "guest", "lab: fault 1000.0"), Line(40 * _SECOND, "guest", "lab: over")
    flood = Run(SCENARIOS["printk-flood"], "6.1", (fault, _alert(9, left_s=23, frame="lab_nic_poll"), end), {})
    assert list(flood.misses()) == ["said a panic that did not come"]
    later = replace(flood, lines=(fault, _alert(30, left_s=23, frame="lab_nic_poll"), end))
    assert list(later.misses()) == []


@pytest.mark.parametrize(
    "unsaid", [{"left_s": None}, {"left_s": 60}, {"left_s": 3, "state": "resolved"}, {"left_s": None, "at_s": 33}]
)
def test_a_panic_that_was_unsaid_in_time_is_none(unsaid):
    fault, end = Line(0, "guest", "lab: fault 1000.0"), Line(70 * _SECOND, "guest", "lab: over")
    word = _alert(**{"at_s": 20, "frame": "lab_nic_poll", **unsaid})
    lines = (fault, _alert(9, left_s=23, frame="lab_nic_poll"), word, end)
    late = unsaid.get("at_s", 0) > 32
    misses = ["said a panic that did not come"] if late else []
    assert list(Run(SCENARIOS["printk-flood"], "6.1", lines, {}).misses()) == misses


def test_another_panic_is_not_the_one_that_was_meant():
    run = replace(_run(), scenario=SCENARIOS["bug-in-interrupt"])
    assert list(run.misses()) == ["panic: softlockup: hung tasks"]


def test_the_page_has_the_latest_run_of_each_scenario(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "foreshock-lab" / "runs").mkdir(parents=True)
    runs = [_run(_alert(2), scenario="null-dereference"), _run(_alert(7, left_s=17)), _run(_alert(1.2, left_s=23))]
    for run in runs:
        keep(replace(run, measured="2026-11-30 09:00 UTC, foreshock 0123abc"))
    latest, other = kept()
    assert (latest.scenario.name, latest.lines) == ("softirq-lockup", runs[-1].lines)
    assert other.scenario.name == "null-dereference" and other.story == runs[0].story
    text = page(kept(), [("kernel", "6.18")])
    assert "1 of 2 scenarios meet" in text and "Not run: bug-in-interrupt, calm, console-lockup" in text
    assert "Measured 2026-11-30 09:00 UTC, foreshock 0123abc." in text
