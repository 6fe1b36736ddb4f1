"""Reading a part of a recording: some tables, some intervals, and how many there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.recording_samples import HEADER, assert_same, interval, write_sample

from tracer.recording import RecordingReader, RecordingWriter, count_intervals

RUN = ("softirq", "run")


def test_only_the_tables_that_are_wanted_are_decoded(tmp_path: Path):
    path = tmp_path / "a.fsk"
    written = write_sample(path, 6)
    with RecordingReader(path, {RUN}) as reader:
        read = list(reader)
        assert reader.truncated is None and not reader.warning
    for ours, theirs in zip(read, written, strict=True):
        assert_same(ours, [window for window in theirs if (window.probe, window.table) == RUN])


@pytest.mark.parametrize("kept", [set(), {0}, {3}, {0, 2, 5}, set(range(6))])
def test_intervals_that_are_passed_leave_the_others_as_they_are(tmp_path: Path, kept: set[int]):
    path = tmp_path / "a.fsk"
    written = write_sample(path, 6)
    with RecordingReader(path, keep=kept.__contains__) as reader:
        read = list(reader)
        # Those that describe a table are needed for the others.
        assert len(read) >= len(kept)
        assert reader.intervals == 6 and reader.truncated is None and not reader.warning
        again = list(reader)
    assert len(again) == len(read)
    starts = {windows[0].start_ns: windows for windows in read}
    for number in kept:
        assert_same(starts[written[number][0].start_ns], written[number])


def test_a_passed_interval_that_is_damaged_is_found(tmp_path: Path):
    path = tmp_path / "a.fsk"
    write_sample(path, 6)
    data = bytearray(path.read_bytes())
    data[-60] ^= 1
    path.write_bytes(data)
    with RecordingReader(path, keep=lambda number: False) as reader:
        list(reader)
        assert "damaged" in reader.damage


@pytest.mark.parametrize("left", [1, 13, 40])
def test_a_cut_is_seen_while_passing(tmp_path: Path, left: int):
    path = tmp_path / "a.fsk"
    write_sample(path, 6)
    path.write_bytes(path.read_bytes()[:-left])
    with RecordingReader(path, keep=lambda number: False) as reader:
        list(reader)
        assert reader.truncated is not None


def test_intervals_are_counted_by_their_heads(tmp_path: Path):
    path = tmp_path / "a.fsk"
    write_sample(path, 7)
    assert count_intervals(path) == 7
    path.write_bytes(path.read_bytes()[:-200])
    assert count_intervals(path) == 7 or count_intervals(path) == 6
    assert count_intervals(tmp_path / "none") == count_intervals("-") == count_intervals(tmp_path) == 0
    (tmp_path / "text").write_text("no recording")
    assert count_intervals(tmp_path / "text") == 0


def test_layouts_that_come_later_are_learnt_although_their_interval_is_not_wanted(tmp_path: Path):
    path = tmp_path / "a.fsk"
    with RecordingWriter(path, HEADER) as writer:
        writer.write(interval(0)[:1])
        writer.write(interval(1))
        writer.write(interval(3))
    with RecordingReader(path, keep=lambda number: number == 2) as reader:
        *_, last = list(reader)
        assert not reader.warning
    assert_same(last, interval(3))


def test_many_intervals_are_counted_by_their_bytes(tmp_path: Path):
    path = tmp_path / "a.fsk"
    write_sample(path, 300)
    assert count_intervals(path) == pytest.approx(300, rel=0.1)
