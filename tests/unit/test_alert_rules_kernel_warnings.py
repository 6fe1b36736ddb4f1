"""What the kernel counts against itself, and how near that is to a panic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from unit.alert_views import SECOND, judged, view

from tracer.alerts.alert import Condition, Severity
from tracer.kernel.sources.detectors import COUNT


def counts(**each: tuple[int, int]) -> np.ndarray:
    """Return rows of ``detectors.counts``; each count as (since boot, in the interval)."""
    return np.array([(name.encode(), *numbers) for name, numbers in each.items()], COUNT)


def found(rows: Sequence[np.ndarray], **settings: Any) -> list[Condition]:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return judged("kernel-warnings", view(500, {}, history={"detectors.counts": rows}, settings=named))


@pytest.mark.parametrize(
    ("name", "severity", "said"),
    [
        ("warn", Severity.WARNING, "kernel warning"),
        ("oops", Severity.PAGE, "oops report"),
        ("rcu_stall", Severity.PAGE, "RCU stall report"),
    ],
)
def test_each_is_told_for_a_minute(name, severity, said):
    quiet, news = counts(**{name: (4, 0)}), counts(**{name: (4, 1)})
    (told,) = found([quiet, news, quiet, quiet])
    assert (told.severity, str(told.subject), told.since_ns) == (severity, f"node {name}", 497 * SECOND)
    assert told.summary.startswith(f"1 {said} in the last minute, 4 since boot")
    assert found([news] + [quiet] * 61) == found([quiet] * 90) == []


@pytest.mark.parametrize(
    ("name", "table"),
    [("rcu_stall", "precursors.told"), ("rcu_stall", "kernellog.lines"), ("softlockup", "cpustall.open")],
)
def test_what_another_rule_sees_and_pages_is_no_second_page(name, table):
    rows = [counts(**{name: (1, 1)})]
    seen = view(500, {table: np.zeros(0, "u1")}, history={"detectors.counts": rows})
    (told,) = judged("kernel-warnings", seen)
    assert told.severity is Severity.WARNING
    (oops,) = judged(
        "kernel-warnings", view(500, {table: np.zeros(0, "u1")}, history={"detectors.counts": [counts(oops=(1, 1))]})
    )
    assert oops.severity is Severity.PAGE


def warned(total: int, pace: int, seconds: int) -> list[np.ndarray]:
    return [counts(warn=(total - pace * (seconds - 1 - n), pace)) for n in range(seconds)]


def test_a_storm_of_warnings_is_a_countdown_to_the_limit():
    (told,) = found(warned(20, 2, 10), kernel__warn_limit=100)
    assert told.severity is Severity.PAGE
    assert told.summary == (
        "20 kernel warnings in the last minute, 20 since boot; at 100 it panics and reboots after 10 s"
    )
    assert told.countdown and told.countdown.told(500 * SECOND) == "panic in ≤ 40 s"
    assert told.countdown.setting == "kernel.warn_limit=100, kernel.panic=10"


@pytest.mark.parametrize(
    ("rows", "limit"),
    [
        (warned(20, 2, 10), 0),  # no limit
        (warned(4, 4, 1), 100),  # a few at once are no pace
        (warned(20, 2, 10), 100_000),  # hours away
    ],
)
def test_far_from_a_limit_warnings_are_warnings(rows, limit):
    (told,) = found(rows, kernel__warn_limit=limit)
    assert (told.severity, told.countdown) == (Severity.WARNING, None) and "panics" not in told.summary


def test_a_quarter_of_the_limit_pages():
    (told,) = found([counts(warn=(25, 1))], kernel__warn_limit=100)
    assert told.severity is Severity.PAGE and told.countdown is None and "at 100 it panics" in told.summary


def test_taints_that_nothing_else_counts():
    died, warn, module = 1 << 7, 1 << 9, 1 << 12
    (told,) = found([counts(taint=(died | module, died))])
    assert told.severity is Severity.PAGE and "tainted by an oops" in told.summary
    assert found([counts(taint=(module, module))]) == found([counts(taint=(died | warn, 0))]) == []
    # This kernel counts them: told once.
    (told,) = found([counts(oops=(1, 1), taint=(died, died))])
    assert told.subject.name == "oops"
    (told,) = found([counts(oops=(0, 0), taint=(1 << 4, 1 << 4))])
    assert "a machine check" in told.summary
