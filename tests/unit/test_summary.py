"""A summary adds up what windows say: exactly, in bounded memory, and without inventing zeros."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.synthetic import HISTOGRAM, MS, SECOND, WORST_WAIT, Node, events, filled
from unit.synthetic import histogram as histogram_rows

from tracer import histogram
from tracer.analysis.events import Tally, Worst
from tracer.analysis.intervals import Intervals
from tracer.analysis.merged import MAX_KEYS, Merged, Shape
from tracer.analysis.statistics import Statistics
from tracer.analysis.summary import Summary
from tracer.window import Window

CPU = [("cpu", "u4")]


def wait_window(values: dict[int, object], start: int = 0, length: int = SECOND, **losses: int) -> Window:
    rows = histogram_rows(CPU, {(cpu,): ns for cpu, ns in values.items()})
    return Window("runqueue", "wait", start, start + length, rows, losses)


@settings(max_examples=60)
@given(st.lists(st.integers(min_value=0, max_value=200 * SECOND), min_size=1, max_size=300), st.integers(1, 5))
def test_quantiles_agree_with_numpy_through_the_buckets(values, parts):
    summary = Summary()
    for part in np.array_split(np.array(values, dtype=np.uint64), parts):
        summary.add(wait_window({0: part}))
    one = summary.table("runqueue", "wait").total().statistics
    edges = [*map(float, histogram.edges_ns()[:-1]), float("inf")]
    for fraction, found in ((0.5, one.p50_ns), (0.9, one.p90_ns), (0.99, one.p99_ns), (0.999, one.p999_ns)):
        true = np.quantile(np.array(values, dtype=np.uint64), fraction, method="inverted_cdf")
        assert found == edges[int(histogram.slot_of(int(true)))]
    assert one.max_ns == edges[int(histogram.slot_of(max(values)))]
    assert (one.count, one.sum_ns) == (len(values), sum(values))


@given(st.lists(st.integers(0, 10**6), min_size=histogram.SLOTS, max_size=histogram.SLOTS))
@settings(max_examples=20)
def test_statistics_are_the_histograms_own(slots):
    slots = np.array(slots, dtype=np.uint64)
    one = Statistics.from_slots(slots, 0)
    found = (one.p50_ns, one.p90_ns, one.p99_ns, one.p999_ns, one.max_ns)
    asked = [histogram.quantile_ns(slots, fraction) for fraction in (0.5, 0.9, 0.99, 0.999)]
    np.testing.assert_equal(found, (*asked, histogram.max_ns(slots)))


def test_series_of_several_cpus_stay_apart_and_add_up():
    summary = Summary()
    summary.add(wait_window({0: [1000], 3: [2000, 3000]}))
    summary.add(wait_window({3: [4000]}, SECOND))
    groups = summary.table("runqueue", "wait").groups("cpu")
    assert {cpu: (one.statistics.count, one.sum_ns) for (cpu,), one in groups.items()} == {0: (1, 1000), 3: (3, 9000)}


def test_more_values_than_a_kernel_counter_holds():
    rows = np.zeros(1, [*CPU, *HISTOGRAM])
    rows["slots"][0, 100] = 2**32 - 1
    merged = Merged(Shape(keys=("cpu",)))
    for _ in range(3):
        merged.add(rows, SECOND)
    assert merged.total().statistics.count == 3 * (2**32 - 1)


def test_a_key_that_appears_twice_in_a_window_counts_twice():
    rows = np.concatenate([histogram_rows(CPU, {(1,): [50]}), histogram_rows(CPU, {(1,): [70]})])
    merged = Merged(Shape(keys=("cpu",)))
    merged.add(rows, SECOND)
    merged.add(rows, SECOND)
    assert (merged.total().statistics.count, merged.total().sum_ns) == (4, 240)


def test_keys_are_bounded_and_what_is_left_out_is_counted():
    merged = Merged(Shape(keys=("cpu",)))
    rows = np.zeros(MAX_KEYS + 7, [*CPU, *HISTOGRAM])
    rows["cpu"] = np.arange(len(rows))
    merged.add(rows, SECOND)
    merged.add(rows, SECOND)
    assert len(merged.groups("cpu")) == MAX_KEYS
    assert merged.unkept_rows == 14


def test_memory_does_not_grow_with_time():
    summary, node = Summary(SECOND), Node(cpus=2)
    row = {"cpu": 1, "waited_cpu": 1, "comm": b"victim", "holder_pid": 1, **filled(60 * MS, 0.9)}
    windows = node.interval(worst=[row] * 50)
    for _ in range(200):
        summary.add_interval(windows)
    assert len(summary.events("runqueue", "worst").events) == 64
    assert summary.events("runqueue", "worst").count == 200 * 50
    assert len(summary.intervals._lengths) == 64


def test_worst_events_are_the_largest_and_ties_keep_the_first():
    worst = Worst("wait_ns", keep=3)
    for sizes in ([5, 1, 9], [7, 9, 2], []):
        worst.add(events(WORST_WAIT, *({"wait_ns": size, "pid": size} for size in sizes)))
    assert [event["wait_ns"] for event in worst.events] == [9, 9, 7]
    assert worst.count == 6


def test_a_tally_keeps_its_total():
    tally: Tally[int] = Tally(keep=10)
    for number in range(1000):
        tally.add(number % 300, number)
    assert tally.total == sum(range(1000))
    assert len(list(tally.items())) <= 20


def test_losses_are_summed_and_0_only_when_measured():
    summary = Summary()
    summary.add(wait_window({0: [1]}, unmatched=2, collided=0))
    summary.add(wait_window({0: [1]}, SECOND, unmatched=3))
    summary.add(Window("napi", "poll", 0, SECOND, np.zeros(0, CPU)))
    assert summary.losses.reasons["runqueue"] == {"unmatched": 5, "collided": 0}
    assert summary.losses.total("runqueue") == 5
    assert summary.losses.total("napi") is None
    assert summary.losses.unmeasured == ["napi"]


def test_a_probe_unknown_here_still_gets_its_histogram():
    summary = Summary()
    summary.add(Window("newprobe", "late", 0, SECOND, histogram_rows(CPU, {(0,): [10, 20]})))
    assert summary.histograms()[("newprobe", "late")].total().statistics.count == 2


def test_an_unknown_table_or_missing_columns_do_no_harm():
    summary = Summary()
    summary.add(Window("runqueue", "worst", 0, SECOND, np.zeros(2, [("wait_ns", "u8"), ("cpu", "u4")])))
    summary.add(Window("netdev", "link", 0, SECOND, np.zeros(2, [("device", "S16"), ("rx_bytes", "u8")])))
    summary.add(Window("what", "ever", 0, SECOND, np.zeros(2, [("x", "f8")])))
    assert summary.events("runqueue", "worst").count == 2


def test_hostile_names_find_no_room_and_are_counted():
    summary, rows = Summary(), histogram_rows(CPU, {(0,): [10]})
    for number in range(100):
        losses = {f"reason {number} {other}": 1 for other in range(100)}
        summary.add(Window(f"probe {number}", "late", number * SECOND, (number + 1) * SECOND, rows, losses))
    assert len(summary.histograms()) == len(summary.losses.reasons) == 64
    assert {len(reasons) for reasons in summary.losses.reasons.values()} == {64}
    assert summary.unkept() == {"losses": 100 * 100 - 64 * 64, "windows of unknown tables": 36}


class TestIntervals:
    def test_a_paused_node_is_left_out(self):
        summary, node = Summary(), Node(cpus=2)
        for _ in range(5):
            summary.add_interval(node.interval())
        summary.add_interval(node.interval(length=43 * SECOND, quiet=True, waits={0: [42 * SECOND]}))
        summary.add_interval(node.interval())
        assert (summary.intervals.paused, summary.intervals.longest_pause_ns) == (1, 43 * SECOND)
        assert summary.table("runqueue", "wait").total().statistics.max_ns < SECOND
        assert summary.table("cpustate", "time").seconds == pytest.approx(6)
        assert summary.table("netdev", "link").seconds == pytest.approx(49)

    def test_a_tracer_that_came_late_is_not_a_pause(self):
        intervals, node = Intervals(), Node(cpus=2)
        for _ in range(5):
            assert intervals.judge(node.interval()) == "ok"
        busy = node.interval(length=8 * SECOND)
        waits = next(window for window in busy if (window.probe, window.table) == ("softirq", "run"))
        waits.rows["slots"] *= 40
        assert intervals.judge(busy) == "late"

    def test_one_long_table_is_no_pause(self):
        intervals, node = Intervals(SECOND), Node(cpus=2)
        windows = node.interval(quiet=True)
        long = Window("netdev", "link", windows[0].start_ns - 60 * SECOND, windows[0].end_ns, np.zeros(0, CPU))
        assert intervals.judge([*windows, long]) == "ok"

    def test_gaps_are_counted(self):
        intervals, node = Intervals(SECOND), Node(cpus=2)
        intervals.judge(node.interval())
        node.now += 5 * SECOND
        intervals.judge(node.interval())
        assert (intervals.gaps, intervals.gap_ns) == (1, 5 * SECOND)
