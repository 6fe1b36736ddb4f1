"""The detector on histograms: what it finds, how sure it is, and what it must not call a fault."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.compare import limits
from tracer.compare.alignment import Grid
from tracer.compare.cause import is_victim, likely_cause, ordered
from tracer.compare.deviation import Deviation, Findings, of_numbers
from tracer.compare.facts import differences, flattened
from tracer.compare.metrics import Series
from tracer.compare.phases import phases_of
from tracer.compare.robust import mad, medians
from tracer.compare.scan import LEAST_WINDOWS, baseline_of, noise, scan, step_noise
from tracer.compare.series import findings_of
from tracer.compare.shapes import LEVELS, beyond, blurred, centroids, log_centers, means_ns
from tracer.compare.telling import Told, Values, told_histogram
from tracer.histogram import GROWTH, SLOTS, slot_of

SECOND = 10**9
WINDOWS, ONSET, ILL = 30, 15, 5
Fault = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def cluster(nodes: int = 24, fault: Fault | None = None, since: int = ONSET, seed: int = 1, ill: int = 1) -> np.ndarray:
    """Histograms of latencies: a common drift of 15 %, nodes that differ by 4 % and windows by 3 %."""
    random = np.random.default_rng(seed)
    slots = np.zeros((nodes, WINDOWS, SLOTS), np.uint64)
    node_scale, common = np.exp(random.normal(0, 0.04, nodes)), np.exp(random.normal(0, 0.15, WINDOWS))
    for node in range(nodes):
        for window in range(WINDOWS):
            values = 20_000 * node_scale[node] * common[window] * np.exp(random.normal(0, 0.03))
            values = values * np.exp(random.normal(0, 0.8, 2000))
            if fault and (node - ILL) % nodes < ill and window >= since:
                values = fault(random, values)
            slots[node, window] = np.bincount(slot_of(values.astype(np.uint64)), minlength=SLOTS)
    return slots


def bulk(factor: float) -> Fault:
    return lambda random, values: values * factor


def tail(share: float, factor: float) -> Fault:
    return lambda random, values: np.where(random.random(len(values)) < share, values * factor, values)


def moved_by(slots: np.ndarray, by: int, share: float) -> np.ndarray:
    """A share of the values ``by`` slots later."""
    moved = np.zeros_like(slots)
    moved[by:] = np.rint(slots[:-by] * share).astype(np.uint64)
    return slots - np.rint(slots * share).astype(np.uint64) + moved


def found(slots: np.ndarray) -> Findings:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return findings_of(slots, SECOND)


@pytest.mark.parametrize("seed", range(6))
def test_healthy_nodes_are_not_accused(seed: int):
    assert found(cluster(seed=seed)) == Findings((), {}, 24)


@pytest.mark.parametrize(
    "fault, ratio", [(bulk(1.25), 1.25), (bulk(1.5), 1.5), (tail(0.02, 16), 1.3), (tail(0.005, 64), 1.3)]
)
def test_a_fault_is_found_on_its_node_from_its_window_on(fault: Fault, ratio: float):
    (one,) = found(cluster(fault=fault)).deviations
    assert one.node == ILL and not one.lasting
    assert abs(one.begin - ONSET) <= 2 and one.end >= WINDOWS - 2
    assert one.ratio == pytest.approx(ratio, rel=0.12)
    assert one.score > 1
    # 2,000 values of 28 µs in the mean, and so much more, each second.
    assert one.lost == pytest.approx(2000 * 27.5e-6 * (ratio - 1), rel=0.5)


def test_bulk_and_tail_are_told_apart():
    assert found(cluster(fault=bulk(1.5))).deviations[0].form == "bulk"
    assert found(cluster(fault=tail(0.02, 16))).deviations[0].form == "tail"


def test_a_node_that_deviates_from_the_start_is_found_without_a_baseline():
    (one,) = found(cluster(fault=bulk(1.5), since=0)).deviations
    assert one.node == ILL and one.lasting and (one.begin, one.end) == (0, WINDOWS)


def test_less_than_ten_percent_is_no_fault():
    assert not found(cluster(fault=bulk(1.05))).deviations


def test_four_bad_windows_are_a_burst_and_five_are_not():
    slots = cluster()
    slots[ILL, 20:24, 32:] = slots[ILL, 20:24, :-32]  # 16 times as long
    assert not found(slots).deviations
    slots = cluster()
    slots[ILL, 20:25, 32:] = slots[ILL, 20:25, :-32]
    (one,) = found(slots).deviations
    assert (one.node, one.begin, one.end) == (ILL, 20, 25)


def test_a_fault_that_comes_and_goes_is_found():
    slots = cluster()
    chosen = [window for window in range(ONSET, WINDOWS) if window % 3]
    slots[ILL, chosen, 8:] = slots[ILL, chosen, :-8]
    assert [one.node for one in found(slots).deviations] == [ILL]


def test_bursts_that_every_node_has_are_no_fault():
    random = np.random.default_rng(3)
    slots = cluster()
    for node in range(len(slots)):
        for window in random.choice(WINDOWS, 2, replace=False):
            slots[node, window, 16:] = slots[node, window, :-16]
    assert not found(slots).deviations


@pytest.mark.parametrize("ill", [8, 12, 16, 19, 20, 23])
def test_what_many_do_together_blames_nobody(ill: int):
    findings = found(cluster(fault=bulk(1.5), ill=ill))
    assert not findings.deviations
    assert sorted(findings.common) == sorted((ILL + place) % 24 for place in range(ill)) and not findings.lasting
    assert abs(findings.onset - ONSET) <= 1
    assert all(ratio == pytest.approx(1.5, rel=0.1) for ratio in findings.common.values())


@pytest.mark.parametrize("ill", [6, 12, 18])
def test_nodes_of_two_kinds_from_the_start_are_told_as_such(ill: int):
    slots = cluster(fault=bulk(2), since=0, ill=ill)
    # One came late.
    slots[1, :11] = 0
    findings = found(slots)
    assert findings.lasting and not findings.deviations
    assert sorted(findings.common) == list(range(ILL, ILL + ill))
    assert all(ratio == pytest.approx(2, rel=0.2) for ratio in findings.common.values())


@pytest.mark.parametrize("node", [2, ILL + 1])
def test_a_node_that_becomes_slower_is_a_straggler_beside_two_kinds(node: int):
    slots = cluster(fault=bulk(2), since=0, ill=6)
    slots[node, ONSET:, 16:] = slots[node, ONSET:, :-16]
    findings = found(slots)
    assert findings.lasting and len(findings.common) == 6
    assert [one.node for one in findings.deviations] == [node]


def test_nodes_that_differ_by_little_are_of_one_kind():
    assert found(cluster(fault=bulk(1.2), since=0, ill=12)).common == {}


def test_a_few_that_were_slow_for_a_while_are_no_kind():
    slots = cluster()
    slots[:8, 10:20, 16:] = slots[:8, 10:20, :-16]
    assert not found(slots).lasting


def shifted(slots: np.ndarray, by: int, windows: slice | list[int]) -> np.ndarray:
    """All nodes slower by so many slots in some of the windows."""
    slots[:, windows, by:], slots[:, windows, :by] = slots[:, windows, :-by].copy(), 0
    return slots


def test_what_all_do_beyond_all_they_did_before_is_a_common_cause():
    findings = found(shifted(cluster(), 16, slice(ONSET, WINDOWS)))
    assert not findings.deviations and len(findings.common) == findings.nodes == 24
    assert (findings.onset, findings.lasting) == (ONSET, False)
    assert all(ratio == pytest.approx(4, rel=0.3) for ratio in findings.common.values())


@pytest.mark.parametrize("ratio", [1.5, 3])
def test_a_node_that_is_slower_still_is_a_straggler_besides(ratio: float):
    findings = found(shifted(cluster(fault=bulk(ratio)), 16, slice(ONSET, WINDOWS)))
    (one,) = findings.deviations
    assert (one.node, one.lasting, len(findings.common)) == (ILL, False, 24)
    assert one.ratio == pytest.approx(ratio, rel=0.15) and abs(one.begin - ONSET) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_beside_a_jump_of_all_nobody_else_is_accused(seed: int):
    slots = shifted(cluster(seed=seed, nodes=8 + 4 * seed), 16, slice(ONSET, WINDOWS))
    # One was not recorded for long, and had bursts then.
    slots[3, ONSET + 6 :] = 0
    slots[3, ONSET : ONSET + 6 : 2] = np.roll(slots[3, ONSET : ONSET + 6 : 2], 24, axis=-1)
    findings = found(slots)
    assert len(findings.common) >= len(slots) - 1 and not findings.deviations


def test_all_slower_in_every_phase_of_the_job_is_a_common_cause():
    """Of the two phases one has values 16 times as long, and a quarter as many."""
    slots = cluster()
    compute = [window for window in range(WINDOWS) if window // 5 % 2]
    shifted(slots, 32, compute)
    slots[:, compute] //= 4
    assert found(slots.copy()).common == {}
    findings = found(shifted(slots, 16, slice(ONSET, WINDOWS)))
    assert not findings.deviations and len(findings.common) == 24 and findings.onset == ONSET
    assert all(ratio == pytest.approx(4, rel=0.3) for ratio in findings.common.values())


def test_phases_that_come_again_or_have_more_to_do_are_no_common_cause():
    again = [window for window in range(WINDOWS) if window // 5 % 2]
    assert found(shifted(cluster(), 16, again)).common == {}
    slots = shifted(cluster(), 16, slice(ONSET, WINDOWS))
    slots[:, ONSET:] *= 2
    assert found(slots).common == {}


@pytest.mark.parametrize("ill", [6, 8, 14])
def test_a_node_far_beyond_what_many_do_together_has_a_fault_of_its_own(ill: int):
    slots = cluster(fault=bulk(1.7), ill=ill)
    slots[ILL + 1, ONSET:, 42:] = slots[ILL + 1, ONSET:, :-42]  # 38 times as long, besides
    findings = found(slots)
    assert sorted(findings.common) == list(range(ILL, ILL + ill))
    (one,) = findings.deviations
    assert one.node == ILL + 1 and one.ratio > 30 and one.lost > limits.LEAST_LOST
    assert abs(one.begin - ONSET) <= 2 and one.end == WINDOWS


@pytest.mark.parametrize("onset", [5, 6, 8])
def test_what_begins_before_there_is_a_baseline_is_told_since_then(onset: int):
    (one,) = found(cluster(fault=bulk(4), since=onset)).deviations
    assert one.node == ILL and one.lasting and one.end == WINDOWS and onset - 1 <= one.begin <= onset


def test_what_all_do_within_what_they_always_do_is_nothing():
    """Twice as long, where all of them together go up and down by 15 %."""
    assert found(shifted(cluster(), 8, slice(ONSET, WINDOWS))) == Findings((), {}, 24)


def test_a_cost_of_microseconds_a_second_is_no_straggler():
    slots = cluster(fault=bulk(1.5))
    shifted = np.zeros_like(slots)
    shifted[..., : SLOTS - 90] = slots[..., 90:]  # 2,000 values of 10 ns: half of it is 10 µs a second
    assert not found(shifted).deviations


@pytest.mark.parametrize("nodes", [2, 3, 4, 7])
def test_few_nodes_need_a_greater_effect(nodes: int):
    slots = cluster(nodes=nodes)
    assert not found(slots).deviations
    slots[0, ONSET:, 1:] = slots[0, ONSET:, :-1]  # 9 %
    assert not found(slots).deviations
    slots[0, ONSET:, 8:] = slots[0, ONSET:, :-8]  # twice as long
    assert [one.node for one in found(slots).deviations] == [0]


def test_windows_and_nodes_without_values_count_nothing():
    slots = cluster(fault=bulk(1.5))
    slots[3] = 0
    slots[ILL, ::4] = 0
    slots[7, 5:] = 0
    findings = found(slots)
    assert findings.nodes == 22
    assert [one.node for one in findings.deviations] == [ILL]


def test_one_node_or_none_has_no_twins():
    assert found(cluster()[:1]) == Findings((), {}, 1)
    assert found(np.zeros((4, WINDOWS, SLOTS), np.uint64)) == Findings((), {}, 0)
    assert found(np.zeros((4, 0, SLOTS), np.uint64)) == Findings((), {}, 0)


def test_shares_are_compared_above_what_matters():
    random = np.random.default_rng(1)
    pairs = np.ones((16, WINDOWS, 2))
    pairs[..., 0] = random.normal(0.05, 0.002, (16, WINDOWS))
    assert not of_numbers(pairs, 0.01).deviations
    pairs[ILL, ONSET:, 0] += 0.05
    (one,) = of_numbers(pairs, 0.01).deviations
    assert (one.node, one.begin) == (ILL, ONSET)
    assert one.ratio == pytest.approx(0.11 / 0.06, rel=0.05) and math.isnan(one.lost)
    assert not of_numbers(pairs, 10.0).deviations, "five percent of what is least"


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_anything_is_judged_without_a_warning(seed: int, nodes: int, windows: int):
    random = np.random.default_rng(seed)
    slots = random.integers(0, 4, (nodes, windows, SLOTS)) * (random.random((nodes, windows, 1)) < 0.7)
    slots[random.random(nodes) < 0.3] <<= int(random.integers(0, 40))
    findings = found(slots.astype(np.uint64))
    assert all(0 <= one.begin < one.end <= windows and one.node < nodes for one in findings.deviations)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of_numbers(random.random((nodes, windows, 2)) * (random.random((nodes, windows, 1)) < 0.7), 0.1)


@given(st.lists(st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(math.nan)), min_size=4, max_size=4), max_size=9))
def test_medians_are_those_of_numpy(values: list[list[float]]):
    array = np.array(values).reshape(-1, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.nanmedian(array, axis=0) if len(array) else np.full(4, np.nan)
    np.testing.assert_allclose(medians(array), expected)


def test_the_scatter_of_normal_values_is_their_sigma():
    assert mad(np.random.default_rng(1).normal(0, 3, 20_000)) == pytest.approx(3, rel=0.03)


def test_the_scan_finds_the_stretch_and_asks_for_five_windows():
    deviations = np.zeros((2, 20))
    deviations[0, 12:17] = 1.0
    deviations[1, 12:16] = 9.0
    stretch = scan(deviations, np.full(20, 0.2), 6, np.array([0.1, 0.1]))
    assert (stretch.begin[0], stretch.end[0]) == (12, 17)
    assert stretch.score[1] == -np.inf
    habit = 1 / (0.1**-2 + 6 * 0.2**-2)
    assert stretch.score[0] == pytest.approx(25 / math.sqrt(5 + (5 / 0.2) ** 2 * habit))


@pytest.mark.parametrize("windows, size", [(0, 0), (5, 0), (8, 0), (9, 3), (30, 10)])
def test_the_first_third_is_the_baseline_if_it_is_long_enough(windows: int, size: int):
    assert baseline_of(windows) == size
    assert windows - size >= LEAST_WINDOWS or size == 0


def test_noise_is_not_less_than_its_floor_and_survives_a_split_cluster():
    random = np.random.default_rng(1)
    quiet = random.normal(0, 0.1, (40, 30))
    assert noise(quiet, 0.01) == pytest.approx(0.1, rel=0.5)
    assert (noise(np.zeros((40, 30)), 0.01) == 0.01).all()
    split = quiet + np.where(np.arange(40) < 20, 0.0, 5.0)[:, None] * (np.arange(30) > 15)
    assert step_noise(split, 0.01) == pytest.approx(0.1, rel=0.1)


def test_shapes_are_those_of_the_values():
    values = np.array([1000] * 50 + [64_000] * 50, np.uint64)
    slots = np.bincount(slot_of(values), minlength=SLOTS)
    middle, error = centroids(slots)
    assert middle == pytest.approx(np.log2(8000), abs=1 / 8)
    assert error == pytest.approx(3 / np.sqrt(100), rel=0.01)
    assert centroids(slots[50:], 50) == (middle, error)
    assert means_ns(slots) == pytest.approx(32_500, rel=GROWTH - 1)
    assert np.isnan(centroids(slots // 10)).all()
    assert np.isnan(means_ns(slots * 0))
    assert (np.diff(log_centers()) > 0).all()


def test_a_heavier_tail_shows_beyond_the_levels_of_the_tail_only():
    usual = cluster(nodes=1)[0, 0]
    slots = np.stack([usual, moved_by(usual, 32, 0.02)])[:, None]
    functions = blurred(slots)
    more = [one[0][:, 0] for one in beyond(functions, functions[0], slots.sum(axis=-1), np.zeros(2), 0.0)]
    assert [one[0] for one in more] == [0] * len(LEVELS)
    assert all(abs(one[1]) < 1 for one, level in zip(more, LEVELS, strict=True) if level >= 0.5)
    assert max(one[1] for one in more) > 5


def test_a_node_that_is_always_slower_is_compared_beyond_as_much_later_levels():
    usual = cluster(nodes=1)[0, 0]
    slots = np.stack([usual, moved_by(usual, 8, 1.0)])[:, None]
    functions = blurred(slots)
    habits = np.array([0.0, 1.0])
    for more, least in beyond(functions, functions[0], slots.sum(axis=-1), habits, 0.02):
        assert more == pytest.approx(0, abs=1e-6)
        assert (least > 0).all()


def test_distributions_are_blurred_by_an_octave():
    slots = np.zeros((1, SLOTS), np.uint64)
    slots[0, 100] = 50
    (function,) = blurred(slots)
    assert function[0] == 0 and function[-1] == 1
    assert sorted(set(function[(function > 0) & (function < 1)].tolist())) == [0.25, 0.5, 0.75]
    assert np.isnan(blurred(slots // 10)).all()


def told(metric: str, part: str = "", *, lost: float = 0.01, ratio: float = 2.0, form: str = "bulk") -> Told:
    deviation = Deviation(0, form, 2.0, ratio, 3, 9, False, lost)  # type: ignore[arg-type]
    return Told(Series(metric, part), deviation, "p99", "ns", 2e6, 1e6, 9e5, 1.1e6, 8)


@pytest.mark.parametrize(
    "deviations, cause",
    [
        ([told("runqueue.wait")], "scheduler"),
        ([told("softirq.delay", "NET_RX")], "softirq"),
        ([told("softirq.delay", "NET_RX"), told("runqueue.wait", lost=0.001)], "scheduler"),
        ([told("softirq.delay", "BLOCK")], "storage"),
        ([told("softirq.run", "NET_RX"), told("runqueue.wait")], "softirq"),
        ([told("hardirq.run", "eth*"), told("softirq.delay", "TIMER")], "interrupts"),
        ([told("hardirq.run", "eth*", lost=0.0001), told("runqueue.wait")], "scheduler"),
        ([told("memory.stall", lost=math.nan), told("runqueue.wait")], "memory"),
        ([told("napi.gap"), told("netdev.lost", lost=math.nan)], "NIC"),
        ([told("napi.gap"), told("softirq.delay", "NET_RX")], "softirq"),
        ([told("cpustate.idle", lost=math.nan)], "none seen"),
        ([told("softirq.run", one, ratio=1.5) for one in ("TIMER", "RCU", "NET_RX")], "thermal/frequency"),
        ([told("softirq.run", one, ratio=r) for one, r in (("TIMER", 1.2), ("RCU", 9), ("SCHED", 2))], "softirq"),
    ],
)
def test_the_cause_is_what_holds_up_the_rest(deviations: list[Told], cause: str):
    assert likely_cause(ordered(deviations)) == cause
    assert likely_cause(ordered(deviations[::-1])) == cause


def test_a_victim_is_no_culprit():
    idle = told("cpustate.idle", lost=math.nan)
    assert is_victim([idle])
    assert not is_victim([idle, told("runqueue.wait")])
    assert ordered([idle, told("napi.gap"), told("runqueue.wait")])[0].series.metric == "runqueue.wait"


def test_a_deviation_is_told_by_the_quantile_that_shows_it():
    slots = cluster(fault=tail(0.02, 16))
    (one,) = found(slots).deviations
    said = told_histogram(Series("softirq.delay", "NET_RX"), one, Values(slots))
    assert said.quantity in ("p99", "p99.9") and said.peers == 23
    assert said.value > 2 * said.median and said.low <= said.median <= said.high


def test_facts_that_twins_share_and_a_suspect_does_not():
    twins = [{"governor": "performance", "serial": str(n), "mtu": "9000"} for n in range(9)]
    rows = differences([{"governor": "powersave", "serial": "x", "extra": "1"}], twins)
    assert [(row.name, row.values, row.usual, row.having, row.of) for row in rows] == [
        ("extra", ("1",), "", 9, 9),
        ("governor", ("powersave",), "performance", 9, 9),
        ("mtu", ("",), "9000", 9, 9),
    ]


def test_a_fingerprint_is_flattened_whatever_it_holds():
    header = {
        "cpus": 2,
        "fingerprint": {
            "host": "x",
            "clocks": {"monotonic_ns": 1},
            "kernel": {"boot_id": "1", "release": "6.1"},
            "interrupts": {"lines": [[4, "eth0", "0-3", "2"], "odd", []]},
            "cpu": {"online": [0, 1], 7: {"deep": {"er": {"and": {"more": {"still": {"so": 1}}}}}}},
            "none": None,
        },
    }
    facts = flattened(header)
    assert facts["cpus"] == "2" and facts["kernel / release"] == "6.1"
    assert facts["interrupts / lines / 4 eth0"] == "0-3, 2"
    assert facts["cpu / online"] == "0, 1"
    assert not any("boot_id" in name or name.startswith(("clocks", "host")) for name in facts)
    assert flattened({"fingerprint": ["hostile"]}) == {}
    assert len(flattened({"fingerprint": {str(n): n for n in range(9000)}})) == 4096


def test_a_grid_tells_times_only_where_there_are_any():
    grid = Grid((), 2 * SECOND, 5, 3)
    assert grid.unix_ns(1) == 12 * SECOND
    assert math.isnan(replace(grid, by_start=True).unix_ns(1))


def test_windows_are_of_the_phase_whose_first_window_is_most_like_them():
    states = np.zeros((2, 12))
    states[0, 4:8] = 3.0
    states[1, 6:8] = 5.0
    states[0, 9] = 1.6
    states[1, 10] = np.nan
    assert phases_of(states).tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 0, 3, 0, 0]
    states[0, 10] = 2.0
    assert phases_of(states)[10] == 3


def test_a_node_is_held_against_what_it_did_in_the_same_phase_before():
    deviations = np.zeros((1, 20))
    deviations[0, 12:18] = 1.0

    def score(since: int) -> float:
        phases = (np.arange(20) >= since).astype(int)
        return float(scan(deviations, np.full(20, 0.2), 6, alike=0.2, phases=phases).score[0])

    among_others = 6 + 1.2**2
    assert score(20) == pytest.approx(30 / math.sqrt(among_others))
    assert score(8) == pytest.approx(30 / math.sqrt(among_others + 36 / (4 + 1 / 9)))
    assert score(12) == pytest.approx(30 / math.sqrt(among_others + 36 * 9))
