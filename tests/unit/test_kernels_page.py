"""docs/kernels.md: a probe's cell says what a guest's run shows, and no more than it came to."""

from __future__ import annotations

from typing import Any

from tests.vm.matrix import steps
from tests.vm.matrix_page import page
from tests.vm.on_kernel import MARK


def _cells(text: str, probe: str) -> list[str]:
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {probe} |")]
    return [cell.strip() for cell in row.strip("|").split("|")[1:]]


def _check(probe: str, status: str) -> dict[str, str]:
    return {"probe": probe, "status": status, "measured": "3 <of> 4", "expected": "4" if status == "FAIL" else ""}


def _run(**parts: Any) -> dict[str, Any]:
    recorded = {"probes": ["softirq", "ledger", "napi"], "refused": {"hung": "no member"}, "missing": [["napi", "tp"]]}
    return {"kernel": "6.1.0", "measured": "then", "recorded": recorded, **parts}


def test_cells_tell_right_from_not_right_from_not_judged():
    checks = [_check("softirq", "PASS"), _check("ledger", "PASS"), _check("ledger", "FAIL"), _check("napi", "SKIP")]
    text = page({"6.1": _run(selftest={"code": 1, "words": "", "answer": {"checks": checks}}), "7.2": {"kernel": "x"}})
    assert _cells(text, "softirq") == ["right", "not known"]
    assert _cells(text, "ledger")[0] == "not right"
    assert _cells(text, "napi")[0] == "runs"
    assert _cells(text, "hung")[0] == "no"
    words = " ".join(text.split())
    assert "- ledger, FAIL: 3 &lt;of> 4; expected 4" in words
    assert "- hung does not attach: no member" in words
    assert "- napi does without: tp" in words


def test_a_run_that_ended_early_judges_nothing():
    text = page({"6.1": _run()})
    assert _cells(text, "softirq") == ["runs"]
    assert "`foreshock selftest`: the run did not come to its end" in text


def test_steps_are_read_among_other_output():
    lines = ["noise", f'{MARK}{{"kernel": "6.1"}}', f'{MARK}{{"doctor": {{"code": 0}}}}', "more noise"]
    assert steps(lines) == {"kernel": "6.1", "doctor": {"code": 0}}
