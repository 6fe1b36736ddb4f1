"""Frames as a stream, and round trips of any rows that a window may have."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.recording_samples import HEADER, assert_same, assert_same_rows, histogram_rows, interval

from tracer.errors import OutputError, RecordingError
from tracer.recording import FrameCut, FrameDecoder, FrameEncoder, Kind, codec, read_frame
from tracer.window import Window

SCALARS = st.sampled_from(
    [f"{order}{kind}{size}" for order in "<>" for kind in "ui" for size in (1, 2, 4, 8)]
    + ["<f2", ">f4", "<f8", "?", "S1", "S16", "S0"]
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
SHAPES = st.sampled_from([(), (), (), (1,), (3,), (40,), (2, 9), (0,)])


def structs(scalars: st.SearchStrategy) -> st.SearchStrategy:
    field = st.tuples(NAMES, scalars, SHAPES).map(_possible)
    fields = st.lists(field, max_size=5, unique_by=lambda field: field[0])
    return st.builds(np.dtype, fields, align=st.booleans())


def _possible(field: tuple[str, object, tuple[int, ...]]) -> tuple[object, ...]:
    # numpy has no arrays of nothing.
    name, base, shape = field
    return field if shape and np.dtype(base).itemsize else (name, base)


DTYPES = structs(st.one_of(SCALARS, structs(SCALARS)))


def round_trip(*intervals: list[Window]) -> list[list[Window]]:
    encoder, decoder = FrameEncoder(), FrameDecoder()
    stream = io.BytesIO(b"".join(encoder.windows(windows) for windows in intervals))
    return [decoder.windows(frame) for frame in iter(lambda: read_frame(stream.read), None)]


@settings(max_examples=400, deadline=None)
@given(
    dtype=DTYPES,
    count=st.integers(0, 6),
    zeros=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
    start=st.integers(0, 2**62),
    length=st.integers(0, 2**62 - 1),
    losses=st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(0, 2**64 - 1), max_size=3),
)
def test_any_rows_come_back(dtype, count, zeros, seed, start, length, losses) -> None:
    random = np.random.default_rng(seed)
    raw = random.integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    raw[random.random(raw.size) < zeros] = 0
    rows = np.frombuffer(raw.tobytes(), dtype, count) if raw.size else np.zeros(count, dtype)
    rows = _with_real_bools(rows)
    window = Window("a", "b", start, start + length, rows, losses)
    [[read]] = round_trip([window])
    assert_same([read], [window])


def _with_real_bools(rows: np.ndarray) -> np.ndarray:
    rows = rows.copy()
    for name in rows.dtype.names or ():
        if rows.dtype[name].base.names is not None:
            rows[name] = _with_real_bools(rows[name])
        elif rows.dtype[name].base.kind == "b":
            rows[name] = rows[name].view("u1") > 127
    return rows


@settings(max_examples=200, deadline=None)
@given(
    dtype=st.sampled_from(["u1", "u2", "u4", "u8", "i1", "i4", "i8"]),
    width=st.integers(8, 400),
    used=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 399), st.integers(-(2**63), 2**64 - 1)), max_size=60),
)
def test_any_sparse_column_comes_back(dtype, width, used) -> None:
    rows = np.zeros(31, [("slots", dtype, (width,))])
    for row, slot, value in used:
        rows["slots"][row, slot % width] = np.array(value % 2**64, "u8").astype(dtype)
    [[read]] = round_trip([Window("a", "b", 0, 1, rows)])
    assert_same_rows(read.rows, rows)


@pytest.mark.parametrize("used", [0, 1, 12, 298])
def test_the_smaller_form_is_used(used: int) -> None:
    rows = np.zeros(50, [("slots", "u4", (298,))])
    rows["slots"][:, 298 - used :] = 2**32 - 1
    [[read]] = round_trip([Window("a", "b", 0, 1, rows)])
    assert_same_rows(read.rows, rows)


def test_distances_longer_than_a_narrow_integer() -> None:
    rows = np.zeros(1000, [("slots", "u8", (298,))])
    rows["slots"][[0, 1, 999], [0, 200, 297]] = [1, 2**40, 2**64 - 1]
    [[read]] = round_trip([Window("a", "b", 0, 1, rows)])
    assert_same_rows(read.rows, rows)


def test_a_table_is_described_once() -> None:
    encoder = FrameEncoder()
    first, second = (encoder.windows([Window("a", "b", 0, 1, histogram_rows(1))]) for _ in range(2))
    assert len(second) < len(first)


def test_more_kinds_of_rows_than_are_kept_at_once() -> None:
    intervals = [
        [Window("a", "b", 0, 1, np.ones(2, [(f"c{number}", "u4")])) for number in range(start, start + 50)]
        for start in (0, 50, 100, 0, 120)
    ]
    for read, written in zip(round_trip(*intervals), intervals, strict=True):
        assert_same(read, written)
    with pytest.raises(OutputError, match="kinds of rows"):
        round_trip([Window("a", "b", 0, 1, np.ones(2, [(f"c{number}", "u4")])) for number in range(200)])


def test_a_stream_needs_no_file() -> None:
    encoder = FrameEncoder()
    stream = io.BytesIO(encoder.header(HEADER) + encoder.windows(interval(0)) + encoder.end())
    decoder = FrameDecoder()
    header, windows, end = (read_frame(lambda size: stream.read(min(size, 7))) for _ in range(3))
    assert header is not None and windows is not None and end is not None
    assert [header.kind, windows.kind, end.kind] == [Kind.HEADER, Kind.WINDOWS, Kind.END]
    assert decoder.header(header)["host"] == "node17"
    assert_same(decoder.windows(windows), interval(0))
    decoder.end(end)
    assert read_frame(stream.read) is None
    with pytest.raises(FrameCut, match="5 bytes"):
        read_frame(io.BytesIO(encoder.end()[:5]).read)


def test_what_does_not_compress_is_stored() -> None:
    rows = np.frombuffer(np.random.default_rng(1).bytes(80_000), [("raw", "S80")])
    window = Window("a", "b", 0, 1, rows)
    assert len(FrameEncoder().windows([window])) < 80_300
    assert_same(round_trip([window])[0], [window])


def _named_and_numbers() -> tuple[list[Window], np.ndarray]:
    named = np.array([(b"rank7", 1), (b"", 2)], [("comm", "S16"), ("ns", "u8")])
    return [
        Window("runqueue", "worst", 1, 2, named, {"lost": 3}),
        Window("runqueue", "worst", 1, 2, named[:0]),
        Window("softirq", "run", 1, 2, histogram_rows(4)),
    ], named


def _has_text(dtype: np.dtype) -> bool:
    return any(dtype[name].kind == "S" for name in dtype.names or ())


def test_of_an_interval_only_what_is_wanted_is_decoded_and_changed() -> None:
    windows, named = _named_and_numbers()
    raw = FrameEncoder().windows(windows)
    frame = read_frame(io.BytesIO(raw).read)
    assert frame is not None
    (some,) = FrameDecoder().some(frame, _has_text)
    assert_same_rows(some.rows, named)
    same = read_frame(io.BytesIO(FrameDecoder().changed(frame, _has_text, lambda window: window)).read)
    assert same is not None
    assert_same(FrameDecoder().windows(same), windows)

    def change(window: Window) -> Window:
        rows = window.rows.copy()
        rows["comm"] = b"h-0123456789"
        return replace(window, rows=rows)

    changed = read_frame(io.BytesIO(FrameDecoder().changed(frame, _has_text, change)).read)
    assert changed is not None
    first, *others = FrameDecoder().windows(changed)
    assert first.rows["comm"].tolist() == [b"h-0123456789"] * 2 and first.rows["ns"].tolist() == [1, 2]
    assert first.losses == {"lost": 3}
    assert_same(others, windows[1:])


def test_what_is_not_wanted_is_not_decoded(monkeypatch) -> None:
    windows, _ = _named_and_numbers()
    frame = read_frame(io.BytesIO(FrameEncoder().windows(windows)).read)
    assert frame is not None
    decoded: list[str] = []
    fill = codec.fill_window

    def filled(found, *rest):
        decoded.append(found["table"])
        return fill(found, *rest)

    monkeypatch.setattr(codec, "fill_window", filled)
    FrameDecoder().some(frame, _has_text)
    FrameDecoder().changed(frame, _has_text, lambda window: window)
    assert decoded == ["worst"] * 2, "nor rows that are not there"


def test_what_is_not_decoded_is_checked_for_its_size() -> None:
    windows, _ = _named_and_numbers()
    frame = read_frame(io.BytesIO(FrameEncoder().windows(windows)).read)
    assert frame is not None
    cut = replace(frame, payload=frame.payload[:-1])
    for decode in (lambda it: it.some(cut, _has_text), lambda it: it.changed(cut, _has_text, lambda window: window)):
        with pytest.raises(RecordingError, match="bytes are missing"):
            decode(FrameDecoder())
