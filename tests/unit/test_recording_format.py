"""docs/recording-format.md is the format: its example is read, and is what the writer writes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from unit.recording_samples import assert_same, frame, split

from tracer.recording import RecordingWriter, codec, dtypes, frames, payload, read_recording
from tracer.window import Window

HEADER = {"architecture": "x86_64", "probes": []}


@pytest.fixture
def page(checkout: Path) -> str:
    return (checkout / "docs" / "recording-format.md").read_text()


def example_window() -> Window:
    rows = np.zeros(2, [("cpu", "u4"), ("slots", "u4", (8,))])
    rows["cpu"] = [0, 1]
    rows["slots"][0, [3, 4]] = [5, 260]
    rows["slots"][1, 3] = 1
    return Window("softirq", "run", 0, 10**9, rows, {"full": 0})


def example(page: str) -> bytes:
    lines = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)(?:  |$)", page.split("```text\n")[1], re.M)
    data = b""
    for offset, digits in lines:
        assert int(offset, 16) == len(data)
        data += bytes.fromhex(digits)
    return data


def test_the_example_is_readable(page: str, tmp_path: Path) -> None:
    path = tmp_path / "example.fsk"
    path.write_bytes(example(page))
    recording = read_recording(path)
    assert recording.header == HEADER
    assert_same(recording.intervals[0], [example_window()])
    assert (len(recording.intervals), recording.warning) == (1, "")


def test_the_example_is_what_is_written(page: str, tmp_path: Path) -> None:
    path = tmp_path / "written.fsk"
    with RecordingWriter(path, HEADER) as writer:
        writer.write([example_window()])
    written = path.read_bytes()
    # Stored, because how small zlib makes something differs between its versions.
    stored = b"".join(frame(kind, payload, compression=0) for _, kind, payload in split(written))
    assert (written[:12] + stored).hex(" ") == example(page).hex(" ")


def test_the_limits_are_the_codes(page: str) -> None:
    assert f"| {frames.MAX_BODY >> 20} MiB each |" in page
    assert f"| {payload.MAX_STRUCTURE >> 20} MiB; {payload._MAX_CONTAINERS:,} containers" in page
    assert f"| {codec.MAX_ROWS_BYTES >> 20} MiB (" in page
    assert f"| {dtypes.MAX_LAYOUTS}, of at most {dtypes.MAX_FIELDS} columns" in page
