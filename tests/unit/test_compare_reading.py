"""Recordings of many nodes into compact numbers: aligned by their clocks, whatever is wrong with some of them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sim.recordings import DEMO, twin, write_twins

from tracer.compare.alignment import align
from tracer.compare.buckets import MOST_BUCKETS, Buckets, Compact, base_length_ns, folded
from tracer.compare.comparison import compare
from tracer.compare.metrics import METRICS, Series, normalised
from tracer.compare.reading import _chosen, read_node, read_nodes
from tracer.histogram import SLOTS
from tracer.recording import FrameDecoder, FrameEncoder, Recording, read_frame, read_recording
from tracer.window import Window

SECOND = 10**9
NET_RX_DELAY = Series("softirq.delay", "NET_RX")
CLOCK = np.dtype([("offset_ns", "i8")])


@pytest.fixture(scope="module")
def demo() -> Recording:
    return read_recording(DEMO)


def counted(recording: Recording, probe: str, table: str, **only: int) -> int:
    rows = [w.rows for windows in recording.intervals for w in windows if (w.probe, w.table) == (probe, table)]
    chosen = [
        one[np.all([one[name] == value for name, value in only.items()], axis=0)] if only else one for one in rows
    ]
    return sum(int(one["slots"].sum()) for one in chosen)


def test_every_value_of_a_recording_is_in_one_bucket(demo: Recording):
    node = read_node(DEMO)
    assert node.histograms[NET_RX_DELAY].counts.sum() == counted(demo, "softirq", "delay", vector=3)
    assert node.histograms[Series("runqueue.wait")].counts.sum() == counted(demo, "runqueue", "wait")
    assert len(node.histograms[NET_RX_DELAY].counts) == 20
    assert node.source.host == "vm"


def test_every_metric_has_a_table_that_a_probe_declares():
    from tracer.probes import all_probes

    declared = {(name, table.name): table for name, probe in all_probes().items() for table in probe.tables}
    for metric in METRICS.values():
        columns = {column.name for column in declared[metric.table].columns}
        if metric.kind != "histogram" and metric.table != ("cpustate", "time"):
            assert {*metric.above, *metric.below} <= columns, metric.name


def test_lines_of_one_kind_are_one_series_whatever_their_numbers():
    assert normalised("name", b"eth0-TxRx-17") == normalised("name", b"eth1-TxRx-3")
    assert normalised("vector", 3) == "NET_RX"
    assert normalised("vector", 77) == "vector 77"


@pytest.mark.parametrize("interval_s, expected_s", [(0, 1), (0.01, 1), (1, 1), (3, 4), (60, 64)])
def test_the_shortest_bucket_holds_an_interval(interval_s: float, expected_s: int):
    assert base_length_ns(int(interval_s * SECOND)) == expected_s * SECOND


@pytest.mark.parametrize("first", [0, 1, 7, 1_796_027_742])
def test_buckets_that_are_added_up_keep_their_sums_and_their_edges(first: int):
    buckets = Buckets()
    moments = [first * SECOND + second * SECOND for second in range(500)]
    for second, moment in enumerate(moments):
        bucket = buckets.place(moment)
        buckets.add_slots(NET_RX_DELAY, bucket, np.eye(1, SLOTS, 5, dtype=np.uint64)[0])
        buckets.add_numbers(Series("netdev.lost"), bucket, second, 1)
    assert buckets.length_ns == 16 * SECOND and buckets.used <= MOST_BUCKETS
    assert buckets.first == first // 16
    per_bucket = np.unique([moment // buckets.length_ns for moment in moments], return_counts=True)[1]
    assert buckets.histograms[NET_RX_DELAY][: buckets.used, 5].tolist() == per_bucket.tolist()
    assert buckets.numbers[Series("netdev.lost")].sum(axis=0).tolist() == [sum(range(500)), 500]


def test_a_moment_before_the_first_bucket_has_no_place():
    buckets = Buckets()
    assert buckets.place(100 * SECOND) == 0
    assert buckets.place(90 * SECOND) < 0


def test_a_jump_of_the_clock_ends(demo: Recording):
    buckets = Buckets()
    buckets.place(0)
    assert buckets.place(2**62) < MOST_BUCKETS


def test_series_beyond_the_limit_are_counted():
    buckets = Buckets(most=2)
    buckets.place(0)
    for part in "abcd":
        buckets.add_slots(Series("hardirq.run", part), 0, np.ones(SLOTS, np.uint64))
    assert len(buckets.histograms) == 2 and buckets.unkept == 2


def test_folding_pairs_by_their_numbers():
    assert folded(np.array([1, 2, 3, 4]), 1, 1).tolist() == [1, 5, 4]
    assert folded(np.array([1, 2, 3, 4]), 0, 1).tolist() == [3, 7]
    assert folded(np.array([1, 2, 3, 4]), 3, 2).tolist() == [1, 9]


def test_compact_histograms_hold_the_same():
    slots = np.zeros((3, SLOTS), np.uint64)
    slots[1, 7], slots[2, 290] = 70_000, 1
    compact = Compact.from_slots(slots)
    assert compact.counts.shape == (3, 284) and compact.counts.dtype == np.uint32
    assert (compact.counts == slots[:, 7:291]).all() and compact.first == 7
    assert Compact.from_slots(np.zeros((3, SLOTS), np.uint64)).counts.shape == (3, 0)


def test_clocks_are_aligned_by_what_the_recordings_say(tmp_path: Path, demo: Recording):
    """A node whose monotonic clock began an hour later has the same moments in the same windows."""
    hour = 3600 * SECOND

    def later(number: int, window: Window) -> Window:
        return replace(window, start_ns=window.start_ns + hour, end_ns=window.end_ns + hour)

    paths = [
        twin(tmp_path / "a.fsk", demo, "a"),
        twin(tmp_path / "b.fsk", demo, "b", change=later, skew_ns=-hour),
    ]
    grid, left_out = align([read_node(path) for path in paths])
    assert not left_out and not grid.by_start
    counts = grid.histograms(NET_RX_DELAY)[1].sum(axis=2)
    assert ((counts > 0).sum(axis=1) >= 30).all()
    assert (counts[0] > 0).tolist() == (counts[1] > 0).tolist()


def test_a_clock_that_was_set_counts_from_then_on(tmp_path: Path, demo: Recording):
    """The first ten seconds were recorded under a clock that was wrong by two hours."""
    offset = demo.header["clock_offset_ns"]

    def setting(number: int, window: Window) -> Window:
        if (window.probe, window.table) == ("agent", "clock") and number == 10:
            return replace(window, rows=np.array([(offset,)], CLOCK))
        return window

    path = twin(tmp_path / "a.fsk", demo, "a", change=setting, skew_ns=2 * 3600 * SECOND)
    node = read_node(path)
    assert node.histograms[NET_RX_DELAY].counts.shape[0] >= 1
    assert any("set back: 50 intervals" in remark for remark in node.remarks)


def test_a_node_of_another_time_is_left_out_and_the_rest_compared(tmp_path: Path, demo: Recording):
    paths = write_twins(tmp_path, 4)
    twin(tmp_path / "x.fsk", demo, "x", skew_ns=24 * 3600 * SECOND)
    grid, left_out = align([read_node(path) for path in [*paths, tmp_path / "x.fsk"]])
    assert [node.source.host for node in grid.nodes] == ["cu00", "cu01", "cu02", "cu03"]
    assert [node.source.host for node, _ in left_out] == ["x"]


def test_a_node_without_a_clock_is_left_out_with_the_reason(tmp_path: Path, demo: Recording):
    paths = write_twins(tmp_path, 3)
    bare = replace(demo, header={**demo.header, "clock_offset_ns": 0})
    twin(tmp_path / "x.fsk", bare, "x", header={"fingerprint": {"clocks": {}}})
    data = (tmp_path / "x.fsk").read_bytes()
    (tmp_path / "x.fsk").write_bytes(_with_header(data, clock_offset_ns="unknown"))
    _, left_out = align([read_node(path) for path in [*paths, tmp_path / "x.fsk"]])
    assert [(node.source.host, why) for node, why in left_out] == [
        ("x", "its clock is not known, and the others are compared by theirs")
    ]


def _with_header(data: bytes, **changes: object) -> bytes:
    stream = io.BytesIO(data)
    preamble = stream.read(12)
    header = FrameDecoder().header(read_frame(stream.read))
    return preamble + FrameEncoder().header(header | changes) + stream.read()


def test_one_of_two_whose_clock_jumps_does_not_stretch_the_other(tmp_path: Path, demo: Recording):
    def jumping(number: int, window: Window) -> Window:
        if (window.probe, window.table) == ("agent", "clock") and number == 30:
            return replace(window, rows=np.array([(demo.header["clock_offset_ns"] + 10**9 * SECOND,)], CLOCK))
        return window

    paths = [twin(tmp_path / "a.fsk", demo, "a"), twin(tmp_path / "b.fsk", demo, "b", change=jumping)]
    grid, left_out = align([read_node(path) for path in paths])
    assert [node.source.host for node, _ in left_out] == ["b"]
    assert grid.length_ns == 2 * SECOND


def test_recordings_made_one_after_the_other_are_laid_side_by_side(tmp_path: Path, demo: Recording):
    for place in range(3):
        twin(tmp_path / f"{place}.fsk", demo, f"n{place}", skew_ns=place * 1000 * SECOND)
    grid, left_out = align([read_node(tmp_path / f"{place}.fsk") for place in range(3)])
    assert grid.by_start and len(grid.nodes) == 3 and not left_out
    assert (grid.histograms(NET_RX_DELAY)[1].sum(axis=2)[:, :28] > 0).all()
    assert np.isnan(grid.unix_ns(0))


def test_what_can_not_be_read_is_named_and_the_rest_is_read(tmp_path: Path, demo: Recording):
    paths = write_twins(tmp_path, 3)
    whole = Path(paths[0]).read_bytes()
    (tmp_path / "cut.fsk").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "head.fsk").write_bytes(whole[:40])
    (tmp_path / "text.fsk").write_text("hello")
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    (tmp_path / "damaged.fsk").write_bytes(damaged)
    (tmp_path / "none.fsk").write_bytes(twin(tmp_path / "n.fsk", demo, "n", seconds=0).read_bytes())
    names = ("cut", "head", "text", "damaged", "none", "gone")
    nodes, skipped = read_nodes([*paths, *(str(tmp_path / f"{name}.fsk") for name in names)])
    assert [Path(one.path).stem for one in skipped] == ["head", "text", "none", "gone"]
    assert len(nodes) == 5
    assert ["cut off" in "".join(node.remarks) for node in nodes] == [False, False, False, True, False]
    assert "damaged" in "".join(nodes[4].remarks)


def test_duplicates_other_architectures_and_filters_are_left_out(tmp_path: Path, demo: Recording):
    paths = [Path(path) for path in write_twins(tmp_path, 4)]
    (tmp_path / "again.fsk").write_bytes(paths[1].read_bytes())
    paths += [
        tmp_path / "again.fsk",
        twin(tmp_path / "arm.fsk", demo, "arm", header={"architecture": "aarch64"}),
        twin(tmp_path / "one.fsk", demo, "one", header={"filters": {"pid": "7"}}),
    ]
    compared = compare([read_node(path) for path in paths])
    assert compared.labels == ("cu00", "cu01", "cu02", "cu03")
    reasons = {Path(path).stem: why for path, why in compared.left_out}
    assert "same node and time" in reasons["again"]
    assert "aarch64" in reasons["arm"] and "pid 7" in reasons["one"]


def test_two_recordings_of_one_host_at_different_times_have_names_of_their_own(tmp_path: Path, demo: Recording):
    twin(tmp_path / "monday.fsk", demo, "n")
    twin(tmp_path / "tuesday.fsk", demo, "n", skew_ns=3600 * SECOND)
    compared = compare([read_node(tmp_path / "monday.fsk"), read_node(tmp_path / "tuesday.fsk")])
    assert compared.labels == ("n (monday.fsk)", "n (tuesday.fsk)")


def test_what_is_too_long_for_a_host_is_cut_and_still_tells_two_apart(tmp_path: Path, demo: Recording):
    names = ["x" * 300 + "a", "x" * 300 + "b", "y" * 300]
    nodes = [read_node(twin(tmp_path / f"{name[0]}{place}.fsk", demo, name)) for place, name in enumerate(names)]
    cut = "x" * 63 + "…"
    assert compare(nodes).labels == (f"{cut} (x0.fsk)", f"{cut} (x1.fsk)", "y" * 63 + "…")


def test_probes_that_some_did_not_record_are_named(tmp_path: Path, demo: Recording):
    paths = write_twins(tmp_path, 3)
    paths.append(str(twin(tmp_path / "z.fsk", demo, "z", without=("softirq",))))
    compared = compare(read_nodes(paths)[0])
    assert dict(compared.partly) == {"softirq delay": 3, "softirq run time": 3}
    assert len(compared.labels) == 4


def test_losses_are_named(tmp_path: Path, demo: Recording):
    def losing(number: int, window: Window) -> Window:
        return replace(window, losses={"unmatched": 900}) if window.probe == "runqueue" else window

    node = read_node(twin(tmp_path / "a.fsk", demo, "a", change=losing))
    assert node.lost > 0.01
    assert "of its runqueue events were not seen" in "".join(node.remarks)


def test_columns_that_are_no_numbers_are_named_and_the_rest_is_read(tmp_path: Path, demo: Recording):
    def broken(number: int, window: Window) -> Window:
        if (window.probe, window.table) != ("softirq", "delay"):
            return window
        rows = np.zeros(1, [("cpu", "u4"), ("vector", "S4"), ("sum", "u8"), ("slots", "u4", (SLOTS,))])
        return replace(window, rows=rows)

    node = read_node(twin(tmp_path / "a.fsk", demo, "a", change=broken))
    assert NET_RX_DELAY not in node.histograms
    assert Series("softirq.run", "NET_RX") in node.histograms
    assert any("vector" in remark for remark in node.remarks)


def test_an_interval_in_which_the_machine_stood_still_is_left_out(tmp_path: Path, demo: Recording):
    def paused(number: int, window: Window) -> Window:
        return replace(window, end_ns=window.end_ns + 30 * SECOND) if number == 59 else window

    node = read_node(twin(tmp_path / "a.fsk", demo, "a", change=paused))
    assert "stood still in 1 of its intervals" in node.remarks
    assert node.end_ns - node.start_ns < 61 * SECOND


def test_of_too_many_intervals_one_of_every_few_is_read(tmp_path: Path, demo: Recording):
    paths = write_twins(tmp_path, 4, seconds=120)
    whole, _ = read_nodes(paths)
    some, _ = read_nodes(paths, budget=100)
    assert [node.every for node in whole] == [1] * 4 and [node.every for node in some] == [5] * 4
    for one, other in zip(whole, some, strict=True):
        counts = [int(node.histograms[NET_RX_DELAY].counts.sum()) for node in (one, other)]
        # The first interval describes the tables: it is read in any case.
        assert counts[1] == pytest.approx(counts[0] / 5, rel=0.1)
        assert other.length_ns == 8 * SECOND
        assert (other.histograms[NET_RX_DELAY].counts.sum(axis=1) > 0).all()
    assert len(compare(some).labels) == 4


def test_which_interval_is_read_does_not_go_with_the_seconds():
    chosen = [number % 12 for number in range(1200) if _chosen(number, 12)]
    assert len(chosen) == 100 and len(set(chosen)) > 8
