"""Black boxes where recordings are read: summary, diff and compare say the same of both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sim.recordings import DEMO, Change, slower, twin
from unit.blackbox_samples import box

from tracer.blackbox.layout import Geometry
from tracer.commands import main
from tracer.commands._run import count_run, open_run
from tracer.recording import FrameEncoder, Kind, Recording, read_recording

LATE = slower(("softirq", "delay"), 64, share=0.1, vector=3)
ROOM = Geometry.of_size(4 << 20)


@pytest.fixture(scope="module")
def demo() -> Recording:
    return read_recording(DEMO)


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, [*map(str, arguments)])


def both(
    folder: Path, demo: Recording, host: str, seconds: int = 20, change: Change | None = None
) -> tuple[Path, Path]:
    """Write the same as a recording and as a black box."""
    path = twin(folder / f"{host}.fsk", demo, host, seconds=seconds, seed=len(host), change=change)
    recorded = read_recording(path)
    boxed = folder / f"{host}.fbx"
    header = {name: value for name, value in recorded.header.items() if name != "boot_id"}
    with box(boxed, ROOM, boot_id=recorded.header["boot_id"], **header) as feed:
        for windows in recorded.intervals:
            at_ns = windows[0].end_ns
            feed.append(FrameEncoder().windows(windows), Kind.WINDOWS, at_ns, at_ns + header["clock_offset_ns"])
    return path, boxed


def test_a_box_is_summarized_as_a_recording_is(demo: Recording, tmp_path: Path):
    path, boxed = both(tmp_path, demo, "cu1")
    told = [json.loads(run("summary", "--json", one).stdout) for one in (path, boxed)]
    for one in told:
        del one["file"]
    assert told[0] == told[1]
    assert count_run(boxed) == count_run(path) == 20 and count_run(tmp_path / "none") == 0
    with open_run(boxed, {("softirq", "run")}, {3, 7}.__contains__) as reader:
        read = list(reader)
    assert [[window.table for window in windows] for windows in read] == [["run"]] * 2 and reader.intervals == 2


def test_what_a_box_lacks_is_said(demo: Recording, tmp_path: Path):
    _, boxed = both(tmp_path, demo, "cu1")
    data = bytearray(boxed.read_bytes())
    data[20_000] ^= 0xFF
    boxed.write_bytes(data)
    done = run("summary", boxed)
    assert done.exit_code == 4 and "The black box lacks 1 record damaged" in done.stdout


def test_boxes_are_compared_with_recordings(demo: Recording, tmp_path: Path):
    before, _ = both(tmp_path, demo, "cu1", 24)
    _, after = both(tmp_path, demo, "cu12", 24, LATE)
    done = run("diff", "--fail-over", "50%", before, after)
    assert done.exit_code == 6 and "NET_RX softirq delay" in done.stderr and "cu12.fbx" in done.stdout
    peers = [both(tmp_path, demo, f"x{'y' * place}", 24)[place % 2] for place in range(4)]
    done = run("compare", after, *peers)
    assert done.exit_code == 1 and done.stdout.startswith("node cu12 may be the straggler: NET_RX softirq delay")


def test_neither_a_box_nor_a_recording_is_said_in_one_line(tmp_path: Path):
    (tmp_path / "text").write_text("text\n" * 2000)
    for verb, *more in (("summary",), ("diff", tmp_path / "text"), ("compare", tmp_path / "text")):
        done = run(verb, tmp_path / "text", *more)
        assert done.exit_code == 4 and "not a foreshock recording" in done.stderr
