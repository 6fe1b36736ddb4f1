"""Stepping through a recording: any position, forwards and backwards, as if the whole of it were held."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tracer.commands._replay import _KEPT, Replay
from tracer.errors import RecordingError
from tracer.recording import RecordingWriter
from tracer.reports.state import RECENT
from tracer.window import Window

ROW = np.dtype([("number", "u4")])
LENGTH = 3 * _KEPT + 7
Record = Callable[[int], Path]


def windows(number: int) -> list[Window]:
    rows = np.full(1, number, ROW.descr[0][1]).view(ROW)
    return [Window("counter", "now", number * 10**9, (number + 1) * 10**9, rows)]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    def _record(intervals: int) -> Path:
        path = tmp_path / "some.fsk"
        with RecordingWriter(path, {"host": "node17"}) as writer:
            for number in range(1, intervals + 1):
                writer.write(windows(number))
        return path

    return _record


def numbers(intervals: list[list[Window]]) -> list[int]:
    return [int(interval[0].rows[0]["number"]) for interval in intervals]


def expected(position: int, length: int = LENGTH) -> list[int]:
    last = min(position, length)
    return list(range(max(1, last - RECENT + 1), last + 1))


def test_any_position_in_any_order(record: Record) -> None:
    random = np.random.default_rng(3)
    jumps = [
        1,
        LENGTH,
        1,
        _KEPT,
        _KEPT + 1,
        LENGTH - _KEPT,
        LENGTH - _KEPT + RECENT - 1,
        LENGTH - _KEPT + RECENT,
        1 << 40,
    ]
    with Replay(str(record(LENGTH))) as replay:
        assert replay.source.host == "node17"
        for position in [*jumps, *random.integers(1, LENGTH + 20, 25).tolist()]:
            assert numbers(replay.until(position)) == expected(position), position
            assert replay.known <= LENGTH


def test_steps_forth_and_back_over_more_than_is_kept(record: Record) -> None:
    with Replay(str(record(LENGTH))) as replay:
        forth = range(1, LENGTH + 1, 10)
        for position in [*forth, *reversed(forth)]:
            assert numbers(replay.until(position)) == expected(position)
        assert replay.known == forth[-1]
        assert not replay.complete


def test_its_end_is_known_once_seen_and_stays_known(record: Record) -> None:
    with Replay(str(record(LENGTH))) as replay:
        replay.until(5)
        assert (replay.known, replay.complete, replay.message) == (5, False, "")
        assert numbers(replay.last()) == expected(LENGTH)
        assert (replay.known, replay.complete, replay.message) == (LENGTH, True, "")
        replay.until(1)
        assert (replay.known, replay.complete, replay.message) == (LENGTH, True, "")


def test_a_recording_without_intervals(record: Record) -> None:
    with Replay(str(record(0))) as replay:
        assert replay.until(1) == replay.last() == []
        assert (replay.known, replay.complete, replay.message) == (0, True, "")


def test_a_cut_recording_says_so_at_its_end_and_after_stepping_back(record: Record) -> None:
    path = record(LENGTH)
    path.write_bytes(path.read_bytes()[:-60])
    with Replay(str(path)) as replay:
        assert replay.until(3) and replay.message == ""
        last = numbers(replay.until(1 << 40))[-1]
        assert LENGTH - 2 <= last < LENGTH
        assert f"was cut off after {last} intervals" in replay.message
        said = replay.message
        replay.until(1)
        assert replay.message == said
        assert numbers(replay.until(last)) == expected(last)


def test_a_damaged_recording_is_shown_up_to_the_damage(record: Record) -> None:
    path = record(LENGTH)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with Replay(str(path)) as replay:
        last = numbers(replay.last())[-1]
        assert 0 < last < LENGTH
        assert "damaged at byte" in replay.message and f"after {last} good intervals" in replay.message
        assert numbers(replay.until(2)) == [1, 2]


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.fsk").write_text("no")
    for path in ("no.fsk", "missing.fsk"):
        with pytest.raises(RecordingError):
            Replay(str(tmp_path / path))


def test_large_intervals_are_kept_by_their_bytes(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.commands._replay._KEPT_BYTES", 4 * ROW.itemsize)
    with Replay(str(record(30))) as replay:
        assert numbers(replay.until(20)) == [17, 18, 19, 20]
        assert numbers(replay.until(20)) == [17, 18, 19, 20]
        assert numbers(replay.until(7)) == [4, 5, 6, 7]
        assert numbers(replay.last()) == [27, 28, 29, 30]
