"""The report's data: every count, share and weight of a recording is in it, however much it had to be made smaller."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from unit.alert_views import opened, stalls
from unit.deep_samples import DEEP_HEADER, EVIL, HZ, deep_windows
from unit.report_data import Data, histograms
from unit.synthetic import HEADER, MS, NET_RX, SECOND, START, Node, hog_interval

from tracer.alerts.engine import Engine
from tracer.analysis.verdict import judge
from tracer.commands._alerts import ReplayedAlerts
from tracer.reports.html.payload import Payload
from tracer.reports.html.timeline import Timeline
from tracer.reports.html.tree import PRUNED, Tree, grown
from tracer.reports.story import signs_of
from tracer.window import Window

PLENTY = 1 << 30


@pytest.fixture
def payload() -> Payload:
    payload, node = Payload(DEEP_HEADER), Node(cpus=2)
    for second in range(4):
        windows = hog_interval(node) if second == 2 else node.interval()
        payload.add_interval([*windows, *deep_windows(second)])
    return payload


def series(data: Data, name: str, part: str = "") -> np.ndarray:
    (found,) = (one for one in data.tree["series"] if (one["name"], one["part"]) == (name, part))
    return histograms(data, found)


def test_histograms_by_time_are_those_of_the_summary(payload):
    data = Data(payload.text(PLENTY))
    for (probe, table), merged in payload.summary.histograms().items():
        assert (series(data, f"{probe}.{table}").sum(axis=0) == merged.total().slots).all()
    by_vector = payload.summary.table("softirq", "delay").groups("vector")
    assert (series(data, "softirq.delay", "NET_RX").sum(axis=0) == by_vector[NET_RX,].slots).all()
    # The bad second is where it was.
    waits = series(data, "runqueue.wait")
    assert waits.shape[0] == 4
    long = data.array(data.tree["edges"]) > 500 * MS
    assert waits[:, long].sum(axis=1).tolist() == [0, 0, 2, 0]


def test_lanes_are_the_shares_of_cpustate(payload):
    data = Data(payload.text(PLENTY))
    lanes = data.tree["lanes"]
    assert (lanes["cpus"], lanes["states"]) == ([0, 1], ["running", "softirq", "hardirq"])
    shares = data.array(lanes["shares"]).reshape(2, 4, 3) / 250
    assert shares[1, 2] == pytest.approx([0.97, 0.02, 0.01], abs=0.003)
    assert shares[1, 0] == pytest.approx([0.37, 0.02, 0.01], abs=0.003)


def weights(data: Data, flame: dict) -> tuple[dict[tuple[str, ...], float], np.ndarray]:
    """Return the weight of each path, and of each bin."""
    parents, nodes = data.array(flame["parents"]).tolist(), data.array(flame["nodes"]).tolist()
    found: dict[tuple[str, ...], float] = {}
    bins = data.array(flame["bins"])
    for leaf, weight in zip(data.array(flame["leaves"]).tolist(), data.array(flame["weights"]).tolist(), strict=True):
        path: list[str] = []
        while leaf:
            path.insert(0, flame["names"][nodes[leaf]][0])
            leaf = parents[leaf]
        found[tuple(path)] = found.get(tuple(path), 0) + weight
    return found, np.bincount(bins, weights=data.array(flame["weights"]))


def test_flames_hold_every_ns_by_time_and_stack(payload):
    data = Data(payload.text(PLENTY))
    on, off, blocked = data.tree["flames"][:3]
    paths, bins = weights(data, on)
    period = SECOND / HZ
    assert paths["hog", "main", "spin"] == pytest.approx(4 * 40 * period)
    assert bins == pytest.approx([47 * period] * 4)
    paths, bins = weights(data, off)
    assert paths["hog", "main", "nvme_wait"] == 4 * (SECOND // 2) + 6
    assert bins.tolist() == [SECOND // 2 + second + 7 for second in range(4)]
    paths, bins = weights(data, blocked)
    assert set(paths) == {("hog", "main", "nvme_wait")}, "state D, without the scheduler"
    assert bins.tolist() == [SECOND // 2 + second for second in range(4)]
    kinds = {name: kind for name, kind, _ in off["names"]}
    assert (kinds["hog"], kinds["main"], kinds["nvme_wait"], kinds["[no stack]"]) == ("t", "u", "k", "m")


def test_a_pause_is_no_latency_and_what_stacks_are_is_learnt_in_it():
    paused, node = Payload(DEEP_HEADER), Node(cpus=2)
    for _ in range(4):
        paused.add_interval(node.interval())
    samples, *told = deep_windows(0)[:3]
    still = node.interval(length=30 * SECOND, quiet=True)
    times = still[0].start_ns, still[0].end_ns
    paused.add_interval([*still, *(Window(one.probe, one.table, *times, one.rows) for one in told)])
    after = node.interval()
    paused.add_interval([*after, Window("oncpu", "samples", after[0].start_ns, after[0].end_ns, samples.rows)])
    assert paused.summary.intervals.paused == 1
    data = Data(paused.text(PLENTY))
    assert (series(data, "runqueue.wait").sum(axis=1) > 0).sum() == 5
    assert ("hog", "main", "spin") in weights(data, data.tree["flames"][0])[0]


def test_findings_and_quality_are_the_summarys_own(payload):
    tree = Data(payload.text(PLENTY)).tree
    verdict = judge(payload.summary)
    assert tree["headline"] == verdict.headline
    assert [one["what"] for one in tree["findings"]] == [one.what for one in verdict.things]
    first = tree["findings"][0]
    assert first["severity"] == "critical"
    # Of the worst wait, in the third second.
    assert START + 2 * SECOND <= first["time_ns"] <= START + 3 * SECOND
    states = {one["what"]: one["state"] for one in tree["quality"]}
    assert states["lost events"] == "good"
    assert {"intervals", "own cost", "context switches", "On CPU stacks", "Off CPU stacks"} <= set(states)


def test_alerts_are_those_that_an_agent_would_have_told(monkeypatch):
    told = []
    judged = Engine.judge

    def judge_and_tell(self, view):
        alerts = judged(self, view)
        told.extend(alerts)
        return alerts

    monkeypatch.setattr(Engine, "judge", judge_and_tell)
    payload, node = Payload(HEADER), Node(cpus=2)
    replayed = ReplayedAlerts(payload.source)
    for second in range(12):
        windows = [one for one in node.interval() if one.probe != "cpustall"]
        length = {"cpu": 1, "pid": 7, "comm": b"rogue"}
        told_now = {
            "since_ns": START,
            "time_ns": windows[0].end_ns,
            "duration_ns": (second + 1) * SECOND,
            "evidence": 1,
        }
        for table, rows in (
            ("stalls", stalls(length | told_now)),
            ("open", opened(length | {"kind": b"stall", "age_ns": (second + 1) * SECOND})),
        ):
            windows.append(Window("cpustall", table, windows[0].start_ns, windows[0].end_ns, rows))
        payload.add_interval(windows)
        replayed.add_interval(windows)
    assert told and replayed.alerts == told and not replayed.failed
    marks = Data(payload.text(PLENTY, signs=signs_of(replayed.alerts)[0])).tree["marks"]
    alerts = [one for one in marks if one["kind"] == "alert"]
    assert {one["alert"]["rule"] for one in alerts} == {one.rule for one in told}
    assert any(one["alert"]["subject"] == {"kind": "cpu", "name": "1"} for one in alerts)
    assert any(one["kind"] == "cpustall.stalls" and "rogue" in one["text"] for one in marks)


def test_rules_that_can_not_look_at_a_hostile_recording_fail_alone():
    replayed = ReplayedAlerts(Payload(HEADER).source)
    nonsense = np.array([(3,)], [("value", "u4")])
    replayed.add_interval([Window("detectors", "settings", START, START + SECOND, nonsense)])
    assert replayed.failed == 1


def test_a_long_recording_has_longer_bins_and_loses_no_count():
    payload, node = Payload({**DEEP_HEADER, "interval_ns": SECOND // 100}), Node(cpus=2, seconds=0.01)
    waits = 0
    for _ in range(2100):
        windows = node.interval(quiet=True, only=("runqueue", "cpustate"))
        waits += sum(int(one.rows["slots"].sum()) for one in windows if one.table == "wait")
        payload.add_interval(windows)
    data = Data(payload.text(PLENTY))
    assert data.tree["time"]["bin_ns"] == SECOND // 50
    assert data.tree["time"]["bins"] == 1050
    assert series(data, "runqueue.wait").sum() == waits
    assert "steps of 20 ms, 2 intervals" in data.tree["dropped"][0]
    shares = data.array(data.tree["lanes"]["shares"]).reshape(2, 1050, 3) / 250
    assert shares[0].mean(axis=0) == pytest.approx([0.35, 0.02, 0.01], abs=0.003)


def test_data_fits_the_size_that_is_asked_for_and_says_what_that_cost():
    random = np.random.default_rng(3)
    payload, node = Payload(DEEP_HEADER), Node(cpus=2)
    stacks = np.zeros(4000 * 8, [("stack", "u8"), ("depth", "u2"), ("frame", "u8")])
    stacks["stack"], stacks["depth"] = np.repeat(np.arange(4000) + 1, 8), np.tile(np.arange(8), 4000)
    stacks["frame"] = random.integers(1, 3000, len(stacks))
    frames = np.zeros(3000, [("frame", "u8"), ("kind", "S1"), ("module", "S64"), ("symbol", "S192")])
    frames["frame"] = np.arange(3000)
    frames["symbol"] = [random.bytes(40).hex().encode() for _ in frames]
    samples = np.zeros(4000, [("cpu", "u4"), ("pid", "u4"), ("comm", "S16"), ("stack", "u8"), ("weight", "u8")])
    samples["stack"], samples["weight"] = np.arange(4000) + 1, 1
    for second in range(64):
        start = START + second * SECOND
        told = [("samples", samples), *((("stacks", stacks), ("frames", frames)) if not second else ())]
        deep = [Window("oncpu", table, start, start + SECOND, rows) for table, rows in told]
        payload.add_interval([*node.interval(), *deep])
    whole = payload.text(PLENTY)
    small = payload.text(len(whole) // 4)
    assert len(small) <= len(whole) // 4
    tree = Data(small).tree
    assert any("[pruned]" in one for one in tree["dropped"])
    assert any("steps of" in one for one in tree["dropped"])
    flame = tree["flames"][0]
    assert Data(small).array(flame["weights"]).sum() + flame["untold"] == pytest.approx(64 * 4000 * SECOND / HZ)


def tree_of(paths: Sequence[Sequence[int]], weights: np.ndarray, **most: int) -> Tree:
    """Grow a tree of paths, each a task and then frames."""
    lengths = np.array([len(path) - 1 for path in paths])
    frames = np.array([frame for path in paths for frame in path[1:]], np.int64)
    return grown(np.array([path[0] for path in paths]), frames, np.cumsum(lengths) - lengths, lengths, weights, **most)


def totals(tree: Tree, weights: np.ndarray) -> np.ndarray:
    own = np.zeros(len(tree.parents))
    np.add.at(own, tree.leaves, weights)
    for node in range(len(own) - 1, 0, -1):
        own[tree.parents[node]] += own[node]
    return own


def by_path(tree: Tree, weights: np.ndarray) -> dict[tuple[int, ...], float]:
    """Return each node's total by the frames from the root to it."""
    paths = [()]
    for parent, frame in zip(tree.parents[1:].tolist(), tree.frames[1:].tolist(), strict=True):
        paths.append((*paths[parent], frame))
    return dict(zip(paths, totals(tree, weights).tolist(), strict=True))


def test_a_tree_holds_every_path_with_what_went_through_it():
    random = np.random.default_rng(4)
    paths = [random.integers(0, 4, random.integers(1, 9)).tolist() for _ in range(500)]
    weights = random.geometric(0.01, 500).astype(float)
    through: dict[tuple[int, ...], float] = {}
    for path, weight in zip(paths, weights.tolist(), strict=True):
        for end in range(len(path) + 1):
            above = tuple(path[:end])
            through[above] = through.get(above, 0) + weight
    assert by_path(tree_of(paths, weights), weights) == through


def test_a_pruned_tree_keeps_its_heaviest_nodes_and_all_totals():
    random = np.random.default_rng(5)
    paths = [random.integers(0, 30, random.integers(1, 12)).tolist() for _ in range(3000)]
    weights = random.geometric(0.01, 3000).astype(float)
    whole, pruned = tree_of(paths, weights), tree_of(paths, weights, most=600)
    assert not whole.cut.any() and len(whole.parents) > 5000
    assert 550 < len(pruned.parents) <= 600 and pruned.cut.any()
    assert (pruned.parents[1:] < np.arange(1, len(pruned.parents))).all(), "parents come first"
    before, after = by_path(whole, weights), by_path(pruned, weights)
    assert after[()] == before[()] == weights.sum()
    below = {path: weight for path, weight in after.items() if path and path[-1] == PRUNED}
    kept = {path: weight for path, weight in after.items() if path not in below}
    assert kept == {path: before[path] for path in kept}
    assert sum(below.values()) == weights[pruned.cut].sum()
    left_out = max(weight for path, weight in before.items() if path not in kept)
    assert left_out <= min(kept.values()), "none that is left out is heavier"


def test_a_tree_of_very_deep_and_very_many_stacks_needs_neither_recursion_nor_room():
    deep = tree_of([[number % 7 for number in range(20_000)], [1, 2]], np.array([3.0, 4.0]))
    assert 500 < len(deep.parents) < 1000
    assert deep.cut.tolist() == [True, False] and (deep.frames == PRUNED).sum() == 1
    many = [[number, *range(number * 200, number * 200 + 200)] for number in range(3000)]
    tree = tree_of(many, np.ones(3000))
    assert len(tree.parents) <= 50_000
    assert totals(tree, np.ones(3000))[0] == 3000


def test_bins_become_longer_when_there_are_too_many():
    class Layer:
        halved = 0

        def halve(self) -> None:
            self.halved += 1

    timeline, layer = Timeline(10, most=8), Layer()
    timeline.layers.append(layer)
    assert [timeline.bin(100 + 10 * n, 110 + 10 * n) for n in range(8)] == list(range(8))
    assert timeline.bin(180, 190) == 4
    assert (timeline.bin_ns, timeline.bins, layer.halved) == (20, 5, 1)
    assert timeline.bin(50, 60) == 0, "a clock that went back"
    assert timeline.bin((1 << 62) - 10, 1 << 62) < 8


def test_no_name_can_be_markup_or_a_control_character(payload):
    text = payload.text(PLENTY, title=EVIL.decode("utf-8", "surrogateescape"))
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    tree = Data(text).tree
    assert tree["title"].endswith(r"\x0a\x1b[2J\u202e\xff 12")
    names = [name for flame in tree["flames"] for name, _, _ in flame["names"]]
    assert any("onerror" in name for name in names)
    assert all(name.isprintable() for name in names)


def test_a_recording_of_nothing_is_a_report_of_nothing():
    tree = Data(Payload({}).text(PLENTY)).tree
    assert tree["series"] == tree["flames"] == tree["marks"] == []
    assert tree["time"]["bins"] == 0
