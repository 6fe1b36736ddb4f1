"""What a report holds of each CPU, and of time that is no stack: it adds up, whoever wrote the recording."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.alert_views import opened, stalls
from unit.deep_samples import DEEP_HEADER, WAKER, deep_windows, still_windows
from unit.report_data import Data, histograms
from unit.synthetic import HEADER, MS, SECOND, START, TIMER, WORST_WAIT, Node, events, hog_interval

from tracer.analysis.stacks import Dictionary
from tracer.histogram import SLOTS
from tracer.reports.html import flames, times
from tracer.reports.html.blob import Blob
from tracer.reports.html.bycpu import ByCpu
from tracer.reports.html.flames import Flames, Limits
from tracer.reports.html.keys import Keys
from tracer.reports.html.payload import Payload
from tracer.reports.html.stalled import Stalled
from tracer.reports.html.timekinds import interrupts, waits
from tracer.reports.html.timeline import Timeline
from tracer.reports.html.times import Times
from tracer.reports.html.weights import Weights
from tracer.window import Window

PLENTY = 1 << 30
#: What a sample says when nobody was seen.
NOBODY = (b"", 0, b"")


@pytest.fixture(scope="module")
def data() -> Data:
    payload, node = Payload(HEADER), Node(cpus=2)
    for second in range(4):
        payload.add_interval(hog_interval(node) if second == 2 else node.interval())
    return Data(payload.text(PLENTY))


def array(blob: Blob, place: dict[str, Any]) -> list[int]:
    """Return an array of a blob."""
    return np.frombuffer(b"".join(blob._parts), place["type"], place["length"], place["at"]).tolist()


def flame(data: Data, name: str) -> dict[str, Any]:
    (found,) = (one for one in data.tree["flames"] if one["name"] == name)
    return found


def paths(
    data: Data, flame: dict[str, Any], cpu: int | None = None, bin: int | None = None
) -> dict[tuple[str, ...], float]:
    """Return the weight of each path, of all CPUs or of one, in all bins or in one."""
    parents, nodes = data.array(flame["parents"]).tolist(), data.array(flame["nodes"]).tolist()
    weights = flame if cpu is None else flame["by_cpu"]
    chosen = slice(None) if cpu is None else data.array(weights["cpus"]) == cpu
    if bin is not None:
        chosen = data.array(weights["bins"]) << weights["longer"] == bin
    found: dict[tuple[str, ...], float] = {}
    leaves, values = data.array(weights["leaves"])[chosen], data.array(weights["weights"])[chosen]
    for leaf, weight in zip(leaves.tolist(), values.tolist(), strict=True):
        path: list[str] = []
        while leaf:
            path.insert(0, flame["names"][nodes[leaf]][0])
            leaf = parents[leaf]
        found[tuple(path)] = found.get(tuple(path), 0) + weight
    return found


def test_waits_are_told_by_who_had_the_cpu_and_by_who_waited(data):
    found = paths(data, flame(data, "waits"))
    assert found["hog", "python3"] == pytest.approx(949 * MS * 0.94, rel=1e-6)
    assert found["hog", "nccl-proxy"] == pytest.approx(640 * MS * 0.92, rel=1e-6)
    assert found["[not known]", "python3"] == pytest.approx(949 * MS * 0.06, rel=1e-6)
    assert sum(found.values()) == (949 + 640) * MS
    assert paths(data, flame(data, "waits"), cpu=1) == found and not paths(data, flame(data, "waits"), cpu=0)


def test_parts_that_add_up_to_more_than_a_wait_are_no_more_than_it():
    rows = np.zeros(3, WORST_WAIT)
    rows["wait_ns"], rows["comm"] = (100, (1 << 64) - 1, 50), b"waiter"
    for name in ("holder_ns", "task_ns", "softirq_ns", "hardirq_ns", "idle_ns"):
        rows[name] = (90, (1 << 64) - 1, 0)
    told = [*waits(Window("runqueue", "worst", START, START + SECOND, rows))]
    every = np.array([ns for _, ns, _ in told])
    assert (every >= 0).all() and every.sum(axis=0).tolist() == [100, 1 << 60, 50]


def test_interrupts_add_up_to_the_histograms_sums_by_cpu_too(data):
    node, sums = Node(cpus=2), {}
    for second in range(4):
        for window in hog_interval(node) if second == 2 else node.interval():
            if (window.probe, window.table) in (("softirq", "run"), ("hardirq", "run")):
                for row in window.rows:
                    key = window.probe, int(row["cpu"])
                    sums[key] = sums.get(key, 0) + int(row["sum"])
    interrupts = flame(data, "interrupts")
    for cpu in (0, 1):
        found = paths(data, interrupts, cpu)
        for probe, top in (("softirq", "softirqs"), ("hardirq", "interrupts")):
            assert sum(ns for path, ns in found.items() if path[0] == top) == sums[probe, cpu]
    names = {path[1] for path in paths(data, interrupts)}
    assert {"NET_RX", "TIMER", "local_timer", "mlx5_comp0 (line 40)"} <= names


def test_histograms_by_cpu_add_up_to_those_of_all(data):
    (series,) = (one for one in data.tree["series"] if (one["name"], one["part"]) == ("softirq.delay", "NET_RX"))
    by_cpu = series["by_cpu"]
    assert by_cpu["longer"] == 0
    found = np.zeros((2, 4, SLOTS), np.uint64)
    at = tuple(data.array(by_cpu[name]).astype(int) for name in ("cpus", "bins", "slots"))
    np.add.at(found, at, data.array(by_cpu["counts"]).astype(np.uint64))
    assert (found.sum(axis=0) == histograms(data, series)).all() and found[0].any() and found[1].any()


def test_histograms_of_rows_in_any_order_of_any_cpu():
    by_cpu = ByCpu()
    slots = np.zeros((5, SLOTS), np.uint32)
    slots[:, 7] = (1, 2, 4, 8, 16)
    by_cpu.add(0, np.array([3, 1, 3, 1 << 31, 0], np.uint32), slots)
    by_cpu.add(0, np.array([-1, 1], np.int32), slots[:2])
    by_cpu.halve()
    by_cpu.add(2, np.array([], np.uint32), slots[:0])
    blob = Blob()
    packed = by_cpu.packed(blob, 100)
    columns = (array(blob, packed[name]) for name in ("bins", "cpus", "slots", "counts"))
    assert [*zip(*columns, strict=True)] == [(0, 0, 7, 16), (0, 1, 7, 4), (0, 3, 7, 5)]


def test_histograms_by_cpu_of_a_long_recording_have_fewer_steps_and_lose_nothing():
    by_cpu, slots = ByCpu(), np.zeros((2, SLOTS), np.uint32)
    slots[:, 7] = (1, 2)
    for bin in range(1000):
        by_cpu.add(bin, np.array([0, 1], np.uint32), slots)
    by_cpu.halve()
    blob = Blob()
    packed = by_cpu.packed(blob, 10_000)
    bins, cpus, counts = (np.array(array(blob, packed[name])) for name in ("bins", "cpus", "counts"))
    assert packed["longer"] == 2 and bins.max() == 999 >> 3
    assert [int(counts[cpus == cpu].sum()) for cpu in (0, 1)] == [1000, 2000]
    assert set(counts[cpus == 0].tolist()) == {8}


def test_a_table_by_cpu_that_is_too_large_has_longer_bins_and_loses_nothing():
    weights, cpus = Weights(), np.arange(8)
    for bin in range(64):
        weights.add(bin, cpus, np.full(8, bin))
    rows = weights.few(100)
    assert len(rows.weights) == 64 and weights.longer == 3 and weights.untold == 0
    assert rows.weights.sum() == 8 * sum(range(64))
    assert rows.bins.tolist() == sorted(rows.bins.tolist())
    rows = weights.few(4)
    assert len(rows.weights) == 4 and rows.weights.sum() + weights.untold == 8 * sum(range(64))
    assert weights.packed(Blob(), rows, rows.numbers, rows.bins, 1.0) is None, "a part of it would be taken for all"
    assert weights.longer == 7
    weights.halve()
    assert weights.longer == 6


def test_weights_are_those_of_a_dict_whatever_the_order_of_bins():
    random = np.random.default_rng(6)
    weights, expected = Weights(most=2000, steps=32), np.zeros((64, 50), np.uint64)
    for bin in (0, 1, 2, 1, 63, *random.integers(0, 64, 100).tolist()):
        numbers, values = random.integers(-1, 50, 200), random.integers(0, 1000, 200, np.uint64)
        weights.add(bin, numbers, values)
        np.add.at(expected[bin], numbers[numbers >= 0], values[numbers >= 0])
        weights.untold -= int(values[numbers < 0].sum())
    assert weights.untold == 0
    assert weights.totals(50).tolist() == expected.sum(axis=0).tolist()
    rows, found = weights.few(10_000), np.zeros((32, 50), np.uint64)
    found[rows.bins, rows.numbers] = rows.weights
    assert weights.longer == 1 and (found == expected[0::2] + expected[1::2]).all()
    weights.keep(np.array([3, 7, 49]))
    assert weights.totals(3).tolist() == expected.sum(axis=0)[[3, 7, 49]].tolist()
    assert weights.untold + weights.totals(3).sum() == expected.sum()


def test_keys_have_numbers_in_their_order_of_coming_until_there_is_no_room():
    random = np.random.default_rng(7)
    keys, expected = Keys(("comm", "S16"), ("stack", "u8"), most=500), dict[tuple[bytes, int], int]()
    for _ in range(5):
        rows = np.zeros(1000, [("comm", "S20"), ("stack", "u4")])
        rows["stack"] = random.integers(0, 400, 1000) * (random.random(1000) < 0.9)
        rows["comm"] = np.array([b"", b"task", b"sixteen letters!", b"sixteen letters?"])[random.integers(0, 4, 1000)]
        found = keys.numbers(rows)
        for key, number in zip(rows.tolist(), found.tolist(), strict=True):
            assert number == (expected.setdefault(key, len(expected)) if key in expected or len(expected) < 500 else -1)
    assert keys.full and [*map(tuple, keys.rows().tolist())] == [*expected]
    keys.keep(np.array([1, 3]))
    assert len(keys) == 2 and keys.numbers(keys.rows()).tolist() == [0, 1]
    assert keys.rows().tolist() == [[*expected][1], [*expected][3]]


def test_of_too_many_stacks_the_heaviest_are_kept_and_no_time_is_lost(monkeypatch):
    monkeypatch.setattr(flames, "_MOST", 8)
    monkeypatch.setattr(flames, "_MOST_BY_CPU", 8)
    graph = Flames(1.0, Dictionary(), lambda frame: False)
    rows = np.zeros(6, [("cpu", "u4"), ("pid", "u4"), ("comm", "S16"), ("stack", "u8"), ("weight", "u8")])
    rows["comm"] = b"task"
    for second in range(10):
        rows["stack"], rows["weight"] = np.arange(6) * (second + 1), (1000, 1, 1, 1, 1, 1)
        graph.add(second, Window("oncpu", "samples", START, START + SECOND, rows), Timeline(SECOND))
    packed = graph.packed(Blob(), Limits())
    assert packed["total"] == 10 * 1005 and 0 < packed["untold"] <= 50
    assert packed["by_cpu"] is None


def test_paths_are_bounded_and_their_time_is_not_lost(monkeypatch):
    monkeypatch.setattr(times, "MOST_PATHS", 10)
    graph = Times(interrupts)
    for number in range(50):
        rows = np.zeros(1, [("cpu", "u4"), ("irq", "i4"), ("name", "S32"), ("sum", "u8"), ("slots", "u4", (SLOTS,))])
        rows["irq"], rows["name"], rows["sum"] = number, b"line", 1000
        graph.add(0, Window("hardirq", "run", START, START + SECOND, rows))
    packed = graph.packed(Blob(), Limits())
    assert packed["total"] == 50_000 and len(packed["names"]) == 1 + 1 + 10 + 1
    assert packed["names"][-1] == ("[others: too many to tell apart]", "m", 0)


def test_stalls_are_a_part_of_the_lanes_whoever_told_of_them():
    payload, node = Payload(DEEP_HEADER), Node(cpus=3)
    for second in range(6):
        windows = [one for one in node.interval() if one.probe != "cpustall"]
        start, end = windows[0].start_ns, windows[0].end_ns
        told = stalls(
            *(
                [{"cpu": 1, "since_ns": START + SECOND // 2, "duration_ns": end - START - SECOND // 2}]
                if second < 3
                else []
            )
        )
        seen = opened(
            *([{"cpu": 1, "kind": b"softirq", "age_ns": end - START - SECOND // 2 - 90 * MS}] if second < 3 else []),
            {"cpu": 0, "kind": b"runnable", "age_ns": 5 * SECOND},
            *([{"cpu": 2, "kind": b"heartbeat", "age_ns": 2 * SECOND}] if second == 4 else []),
        )
        windows += [Window("cpustall", name, start, end, rows) for name, rows in (("stalls", told), ("open", seen))]
        payload.add_interval(windows)
    data = Data(payload.text(PLENTY))
    stalled = data.array(data.tree["lanes"]["stalled"]).reshape(3, 6) / 250
    assert stalled[0].tolist() == [0] * 6, "a task that waits is no CPU that stands still"
    assert stalled[1].tolist() == [0.5, 1, 1, 0, 0, 0]
    assert stalled[2].tolist() == [0, 0, 0, 1, 1, 0]


def test_hostile_stalls_are_bounded(monkeypatch):
    monkeypatch.setattr("tracer.reports.html.stalled.MOST_STALLS", 10)
    stalled, timeline = Stalled(), Timeline(SECOND)
    timeline.bin(START, START + SECOND)
    rows = stalls(*({"cpu": 0, "since_ns": n * SECOND, "duration_ns": (1 << 64) - 1} for n in range(20)))
    stalled.add(Window("cpustall", "stalls", START, START + SECOND, rows))
    rows = events(np.dtype([("cpu", "u4"), ("duration_ns", "u8")]), {"cpu": 3, "duration_ns": 1})
    stalled.add(Window("cpustall", "stalls", START, START + SECOND, rows))
    assert stalled.unkept == 10
    assert np.isfinite(stalled.shares([0, 3], timeline)).all()


def test_off_cpu_time_is_told_by_who_ended_it():
    payload = Payload(DEEP_HEADER)
    waking = {60: (b"t", 0, b"irq/35-nvme"), 9: (b"s", TIMER, b"")}
    for second in range(3):
        windows = deep_windows(second)
        for place, window in enumerate(windows):
            if (window.probe, window.table) == ("offcpu", "samples"):
                rows = np.zeros(len(window.rows), [*window.rows.dtype.descr, *WAKER])
                for name in window.rows.dtype.names or ():
                    rows[name] = window.rows[name]
                for row in rows:
                    who = waking[int(row["pid"])] if second else NOBODY
                    row["waker_kind"], row["waker_vector"], row["waker_comm"] = who
                windows[place] = Window("offcpu", "samples", window.start_ns, window.end_ns, rows)
        payload.add_interval(windows)
    data = Data(payload.text(PLENTY))
    wakers = flame(data, "wakers")
    assert paths(data, wakers) == {
        ("[nobody was seen]", "hog", "main", "nvme_wait"): SECOND // 2,
        ("[nobody was seen]", "?", "[no stack]"): 7,
        ("irq/35-nvme", "hog", "main", "nvme_wait"): 2 * (SECOND // 2) + 3,
        ("softirq TIMER", "?", "[no stack]"): 14,
    }
    assert sum(paths(data, wakers).values()) == sum(paths(data, flame(data, "offcpu")).values())
    kinds = {name: kind for name, kind, _ in wakers["names"]}
    assert (kinds["irq/35-nvme"], kinds["softirq TIMER"], kinds["hog"], kinds["main"]) == ("a", "k", "t", "u")


def test_blocks_that_went_on_at_the_end_have_their_part_of_every_bin(monkeypatch):
    """One began 3.5 s before the end, one before the recording, whose first bin reaches back to then."""
    payload = Payload(DEEP_HEADER)
    for second in range(4):
        payload.add_interval(deep_windows(second))
    payload.add_interval(still_windows(4, o=3 * SECOND + SECOND // 2, a=5 * SECOND + 7))
    data = Data(payload.text(PLENTY))
    expected = {"o": [0, SECOND // 2, *[SECOND] * 3], "a": [SECOND + 7, *[SECOND] * 4]}
    for name in ("offcpu", "blocked"):
        by_bin = [paths(data, flame(data, name), bin=bin) for bin in range(5)]
        assert {kind: [one.get((kind, "[no stack]"), 0) for one in by_bin] for kind in expected} == expected
        of_cpu = paths(data, flame(data, name), cpu=0)
        assert [of_cpu[kind, "[no stack]"] for kind in ("o", "a")] == [3 * SECOND + SECOND // 2, 5 * SECOND + 7]
    by_bin = [paths(data, flame(data, "wakers"), bin=bin) for bin in range(5)]
    assert [one.get(("[still blocked at the end]", "o", "[no stack]"), 0) for one in by_bin] == expected["o"]
    # Where there are very many, their parts are those of several bins; the sum stays.
    monkeypatch.setattr(flames, "_MOST_PIECES", 2)
    payload = Payload(DEEP_HEADER)
    for second in range(4):
        payload.add_interval(deep_windows(second))
    payload.add_interval(still_windows(4, o=3 * SECOND + SECOND // 2, a=5 * SECOND + 7))
    data = Data(payload.text(PLENTY))
    by_bin = [paths(data, flame(data, "offcpu"), bin=bin) for bin in range(5)]
    assert [one.get(("a", "[no stack]"), 0) for one in by_bin] == [0, 3 * SECOND + 7, 0, 0, 2 * SECOND]


def test_a_recording_without_wakers_has_no_such_flame_graph():
    payload = Payload(DEEP_HEADER)
    payload.add_interval(deep_windows(0))
    assert "wakers" not in [one["name"] for one in Data(payload.text(PLENTY)).tree["flames"]]


def test_stacks_by_cpu_add_up_to_those_of_all():
    payload, node = Payload(DEEP_HEADER), Node(cpus=2)
    for second in range(4):
        payload.add_interval([*node.interval(), *deep_windows(second)])
    data = Data(payload.text(PLENTY))
    for name in ("oncpu", "offcpu", "blocked"):
        one = flame(data, name)
        each = [paths(data, one, cpu) for cpu in (0, 1)]
        added = {path: sum(found.get(path, 0) for found in each) for path in each[0].keys() | each[1].keys()}
        assert added == pytest.approx(paths(data, one))
    assert set(paths(data, flame(data, "oncpu"), cpu=0)) == {("hog", "main", "spin")}
