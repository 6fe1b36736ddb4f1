"""Memory: leaks are told in time, with who grows; start-ups, bursts and full memory are not told at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from unit.alert_views import SECOND, judged, one, view

from tracer.alerts.alert import Condition, Severity, State
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import View
from tracer.alerts.rules import rules
from tracer.commands._faults import FAULTS, MEMORY_SHARE
from tracer.kernel.sources.memory import GROWER

GIB = 1 << 30
TOTAL = 64 * GIB


def info(left: float, **grown: float) -> np.ndarray:
    """Return a row of ``memory.info`` with ``left`` bytes available."""
    columns = dict.fromkeys(("slab_unreclaimable", "anon", "shmem", "unnamed", "vmalloc", "percpu", "hugetlb"), 0.0)
    return one(total=TOTAL, available=max(left, 0), swap_free=0, **{**columns, **grown})


def history(left: Sequence[float], column: str = "anon") -> list[np.ndarray]:
    """Return one row per value; what is not left is in ``column``."""
    return [info(each, **{column: TOTAL - each}) for each in left]


def grower(kind: bytes, name: bytes, pace: float) -> np.ndarray:
    return np.array([(kind, name, 9 * GIB, int(10 * pace), 10 * SECOND), (kind, b"other", GIB, 1, SECOND)], GROWER)


def seen(left: Sequence[float], column: str = "anon", growers: np.ndarray | None = None, **settings: Any) -> View:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    tables = {} if growers is None else {"memory.growers": growers}
    return view(1000, tables, history={"memory.info": history(left, column)}, settings=named)


def exhaustion(*arguments: Any, **more: Any) -> list[Condition]:
    return judged("memory-exhaustion", seen(*arguments, **more))


def falling(start: float, pace: float, seconds: int) -> list[float]:
    return [start - pace * second for second in range(seconds)]


def test_a_slab_leak_pages_and_names_the_slab():
    left = falling(40 * GIB, 0.1 * GIB, 100)
    (found,) = exhaustion(left, "slab_unreclaimable", grower(b"slab", b"kmalloc-4k", 0.1 * GIB))
    assert found.severity is Severity.PAGE and str(found.subject) == "memory"
    assert found.numbers["time_left_s"] == pytest.approx(left[-1] / (0.1 * GIB), rel=0.01)
    assert found.summary == (
        "memory is gone in 5 min 01 s at 102 MiB per second: 30.1 GiB left, and it goes to the kernel's objects "
        "(SUnreclaim), most of all slab kmalloc-4k (102 MiB per second); then the OOM killer ends tasks (no "
        "vm.panic_on_oom)"
    )
    assert found.countdown is None


def test_with_panic_on_oom_it_is_a_countdown():
    (found,) = exhaustion(falling(40 * GIB, 0.1 * GIB, 100), "slab_unreclaimable", vm__panic_on_oom=1)
    assert found.countdown and found.countdown.told(1000 * SECOND) == "panic in ≤ 5 min 01 s"
    assert found.countdown.setting == "vm.panic_on_oom=1, kernel.panic=10"


@pytest.mark.parametrize("seconds", [FAULTS["memory-slope"].usual_s, FAULTS["memory-slope"].longest_s])
def test_what_inject_takes_is_told_before_it_is_given_back(seconds):
    pace = MEMORY_SHARE * 60 * GIB / seconds
    told = [exhaustion([60 * GIB] * 130 + falling(60 * GIB, pace, second)) for second in range(seconds)]
    assert any(told) and not any(told[:30])


@pytest.mark.parametrize("seconds", [60, 120, 600])
def test_a_leak_is_told_by_half_time(seconds):
    """What a leak that takes all memory in ``seconds`` shows, second by second."""
    pace = 60 * GIB / seconds
    quiet = [60 * GIB] * 130
    for second in range(1, seconds):
        if exhaustion(quiet + falling(60 * GIB, pace, second + 1), "slab_unreclaimable"):
            break
    assert second <= seconds / 2
    (found,) = exhaustion(quiet + falling(60 * GIB, pace, second + 1), "slab_unreclaimable")
    assert found.severity is Severity.PAGE
    assert found.numbers["time_left_s"] == pytest.approx(seconds - second, rel=0.2)


def test_a_slow_kernel_leak_is_a_warning():
    (found,) = exhaustion(falling(40 * GIB, 40 * GIB / 2400, 125), "slab_unreclaimable")
    assert found.severity is Severity.WARNING
    assert exhaustion(falling(40 * GIB, 40 * GIB / 7200, 125), "slab_unreclaimable") == []


def test_processes_that_fill_memory_page_when_little_is_left():
    (found,) = exhaustion(falling(40 * GIB, 0.2 * GIB, 70), "anon", grower(b"cgroup", b"/job/7", 0.2 * GIB))
    assert found.severity is Severity.WARNING and "cgroup /job/7" in found.summary
    # A job that fills all but a tenth of the memory, and stops there.
    (found,) = exhaustion(falling(20 * GIB, 0.2 * GIB, 70))
    assert found.severity is Severity.WARNING
    (found,) = exhaustion(falling(16 * GIB, 0.2 * GIB, 70))
    assert found.severity is Severity.PAGE
    (found,) = exhaustion(falling(40 * GIB, 0.2 * GIB, 70), vm__panic_on_oom=1)
    assert found.severity is Severity.PAGE


def test_what_drivers_pin_pages_at_half():
    (found,) = exhaustion(falling(60 * GIB, 0.2 * GIB, 70), "unnamed")
    assert found.severity is Severity.WARNING
    (found,) = exhaustion(falling(40 * GIB, 0.2 * GIB, 70), "unnamed")
    assert found.severity is Severity.PAGE


def test_a_cgroup_that_does_not_grow_much_is_not_named():
    (found,) = exhaustion(falling(40 * GIB, 0.2 * GIB, 70), "anon", grower(b"cgroup", b"/idle", 1000))
    assert "cgroup" not in found.summary


def _noise(size: int) -> np.ndarray:
    return np.random.default_rng(3).normal(0, 0.05 * GIB, size)


CALM = {
    "steady": 40 * GIB + _noise(300),
    "nearly full, steady": 1.2 * GIB + _noise(300),
    "a start-up that ends": np.concatenate([60 * GIB - np.arange(40) * GIB, np.full(60, 20 * GIB)]),
    "a start-up under way": np.concatenate([np.full(100, 60 * GIB), 60 * GIB - np.arange(40) * GIB]),
    "checkpoint bursts": 30 * GIB - 12 * GIB * ((np.arange(300) % 60) < 15),
    "checkpoints that are written slowly": 30 * GIB - 0.4 * GIB * (np.arange(300) % 30),
    "a slow drift": falling(40 * GIB, 0.001 * GIB, 300),
    "memory that comes back": 10 * GIB + np.arange(300) * 0.1 * GIB,
}


@pytest.mark.parametrize("shape", CALM)
def test_what_says_nothing(shape):
    for end in range(1, len(CALM[shape]) + 1):
        assert exhaustion(CALM[shape][max(0, end - 150) : end]) == []


def test_the_glance_before_the_slope_hides_nothing(monkeypatch):
    chance, views = np.random.default_rng(7), []
    for _ in range(60):
        pace = 10 ** chance.uniform(6, 9.5)
        noise = chance.normal(0, pace * chance.uniform(0, 4), 120)
        left = falling(chance.uniform(2, 60) * GIB, pace, 120) + noise
        views.append(seen(list(left), chance.choice(["anon", "unnamed", "slab_unreclaimable"])))
    found = [judged("memory-exhaustion", each) for each in views]
    monkeypatch.setattr("tracer.alerts.rules.exhaustion._may_fall", lambda *given: True)
    assert found == [judged("memory-exhaustion", each) for each in views]
    assert 10 <= sum(map(bool, found)) <= 55, "some fall, some do not"


def test_a_slope_that_stops_is_over_soon():
    left = [50 * GIB] * 60 + falling(50 * GIB, 0.2 * GIB, 100) + [30 * GIB] * 100
    engine = Engine([rules()["memory-exhaustion"]], Identity("cu39", "b007", 0))
    states: dict[State, int] = {}
    for second in range(2, len(left)):
        rows = history(left[max(0, second - 200) : second], "slab_unreclaimable")
        for alert in engine.judge(view(1000 + second, {}, history={"memory.info": rows})):
            states.setdefault(alert.state, second)
    assert 60 < states[State.FIRING] <= 60 + 60
    assert 160 < states[State.RESOLVED] <= 160 + 45


def test_a_leak_that_slows_down_is_not_over():
    """As measured in a guest that grew slow itself: 23 MiB per second, from 45 s on 5.5 of them, jittery."""
    mib, chance = 1 << 20, np.random.default_rng(5)
    paces = np.concatenate([np.zeros(60), np.full(45, 23.3), np.full(140, 5.5)]) * mib
    left = 1.79 * GIB - np.cumsum(paces * chance.uniform(0.6, 1.4, len(paces)))
    engine = Engine([rules()["memory-exhaustion"]], Identity("cu39", "b007", 0))
    told = []
    for second in range(2, len(left)):
        rows = history(left[max(0, second - 200) : second], "slab_unreclaimable")
        told += engine.judge(view(1000 + second, {}, history={"memory.info": rows}, settings={"vm.panic_on_oom": 1}))
    assert [(alert.state, alert.severity) for alert in told] == [(State.FIRING, Severity.PAGE)] * 2
    # The second one is there when the first one's time is up.
    promised = told[0].condition.countdown
    assert promised and 0 <= told[1].at_ns - promised.latest_ns < SECOND and told[1].says_panic
    (alert,) = engine.firing
    assert alert.condition.numbers["bytes_per_s"] == pytest.approx(5.5 * mib, rel=0.2)
    assert "the kernel's objects" in alert.condition.summary


def test_gaps_and_kernels_without_columns():
    rows = [one(total=TOTAL, available=each) for each in falling(8 * GIB, 0.1 * GIB, 70)]
    (found,) = judged("memory-exhaustion", view(1000, {}, history={"memory.info": rows}))
    assert "what no counter tells" in found.summary and found.severity is Severity.PAGE
    holes = [row[:0] if number % 2 else row for number, row in enumerate(rows)]
    assert judged("memory-exhaustion", view(1000, {}, history={"memory.info": holes}))
    assert judged("memory-exhaustion", view(1000, {"memory.info": rows[-1]})) == []


def test_long_intervals_make_a_slope_as_well():
    rows = history(falling(40 * GIB, 1 * GIB, 14), "slab_unreclaimable")
    (found,) = judged("memory-exhaustion", view(1000, {}, history={"memory.info": rows}, interval_s=10))
    assert found.numbers["bytes_per_s"] == pytest.approx(0.1 * GIB, rel=0.01)


def effort(seconds: int = 10, **each: float) -> dict[str, list[np.ndarray]]:
    columns = {"allocation_stalls": 0.0, "some_ns": 0.0, "full_ns": 0.0, "oom_kills": 0.0, **each}
    return {"memory.effort": [one(**columns)] * seconds}


@pytest.mark.parametrize(
    ("stalls", "some", "full", "severity"),
    [
        (500, 0.3, 0.1, Severity.WARNING),
        (5000, 0.9, 0.6, Severity.PAGE),
        (20, 0.9, 0.6, None),  # one cgroup at its limit
        (500, 0.05, 0.0, None),  # files streamed through a full page cache
    ],
)
def test_reclaim_storms(stalls, some, full, severity):
    made = effort(allocation_stalls=stalls, some_ns=some * SECOND, full_ns=full * SECOND)
    assert [each.severity for each in judged("reclaim-storm", view(100, {}, history=made))] == (
        [severity] if severity else []
    )


def test_a_moment_of_reclaim_is_no_storm():
    made = effort(3, allocation_stalls=5000, some_ns=SECOND, full_ns=SECOND)
    assert judged("reclaim-storm", view(100, {}, history=made)) == []


def test_without_psi_the_stalls_alone_have_to_be_many():
    rows = {number: [one(allocation_stalls=number, oom_kills=0)] * 10 for number in (500, 5000)}
    assert judged("reclaim-storm", view(100, {}, history={"memory.effort": rows[500]})) == []
    (found,) = judged("reclaim-storm", view(100, {}, history={"memory.effort": rows[5000]}))
    assert found.severity is Severity.WARNING and "tasks wait" not in found.summary


@pytest.mark.parametrize(
    ("kills", "stalls", "left", "severity"),
    [(1, 0, 30 * GIB, Severity.INFO), (1, 50, GIB, Severity.WARNING), (3, 50, GIB, Severity.PAGE)],
)
def test_kills(kills, stalls, left, severity):
    quiet, killing = one(allocation_stalls=0, oom_kills=0), one(allocation_stalls=stalls, oom_kills=1)
    made = {"memory.effort": [quiet] * 5 + [killing] * kills + [quiet] * 20}
    (found,) = judged("oom-kill", view(100, {"memory.info": info(left)}, history=made))
    assert (found.severity, found.numbers["kills"]) == (severity, kills)
    assert judged("oom-kill", view(100, {"memory.info": info(left)}, history=effort(60))) == []
