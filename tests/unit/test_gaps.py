"""Recordings with a gap, as of an agent that was down: no window covers it, and it is said."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from sim.recordings import DEMO, Change, slower, twin

from tracer.commands import main
from tracer.compare.reading import read_node
from tracer.recording import Recording, RecordingWriter, read_recording

_SECOND = 10**9
_HOUR = 3600 * _SECOND


@pytest.fixture(scope="module")
def demo() -> Recording:
    return read_recording(DEMO)


def gapped(
    path: Path, demo: Recording, seconds: int, at: int, gap_ns: int, seed: int = 1, change: Change | None = None
) -> str:
    """Write a recording in which nothing is recorded for ``gap_ns`` after its first ``at`` intervals."""
    whole = read_recording(twin(path, demo, "cu17", seconds=seconds, seed=seed, change=change))
    path.unlink()
    writer = RecordingWriter(path, whole.header)
    for number, windows in enumerate(whole.intervals):
        by_ns = gap_ns if number >= at else 0
        writer.write([replace(one, start_ns=one.start_ns + by_ns, end_ns=one.end_ns + by_ns) for one in windows])
    writer.close()
    return str(path)


def said(*arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "120"}).invoke(main, list(arguments))
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def test_windows_of_a_difference_are_as_short_as_without_the_gap(demo: Recording, tmp_path: Path):
    before = str(twin(tmp_path / "before.fsk", demo, "cu17", seconds=30))
    after = gapped(tmp_path / "after.fsk", demo, 30, 15, _HOUR, change=slower(("softirq", "run"), 8, vector=3))
    told = said("diff", before, after)
    assert told.startswith("slower beyond the noise: NET_RX softirq run time")
    assert "30 s in 30 windows" in told
    assert re.search(r"after: nothing was recorded for 1 h 00 min from [\d-]+ [\d:]+ UTC on", told), told


def test_a_stretch_after_a_gap_is_told_with_its_own_time(demo: Recording, tmp_path: Path):
    before = str(twin(tmp_path / "before.fsk", demo, "cu17", seconds=60))
    late = slower(("softirq", "delay"), 64, since=36, share=0.1, vector=3)
    after = gapped(tmp_path / "after.fsk", demo, 60, 20, _HOUR, change=late)
    told = said("diff", before, after)
    # Recorded from 08:35:42 on, and an hour later again.
    found = re.match(r"only for \d+ s of after, from 09:36:(\d\d) UTC \(([\d.]+) s in\)", told)
    assert found and 13 <= int(found[1]) <= 23 and 31 <= float(found[2]) <= 41, told


def test_a_comparison_has_the_longer_part_of_what_a_long_gap_parts(demo: Recording, tmp_path: Path):
    node = read_node(gapped(tmp_path / "parted.fsk", demo, 40, 30, _HOUR))
    assert node.length_ns == _SECOND and node.seen_ns.sum() == pytest.approx(30 * _SECOND, rel=0.05)
    assert node.end_ns - node.start_ns < 31 * _SECOND
    assert [one for one in node.remarks if one.startswith("nothing was recorded for 1 h")]
    assert "only the longest part between gaps is compared" in node.remarks


def test_a_comparison_goes_on_after_a_short_gap(demo: Recording, tmp_path: Path):
    node = read_node(gapped(tmp_path / "whole.fsk", demo, 40, 20, 10 * _SECOND))
    assert node.seen_ns.sum() == pytest.approx(40 * _SECOND, rel=0.05)
    assert [one for one in node.remarks if one.startswith("nothing was recorded for 10 s")]


def test_the_summary_says_it(demo: Recording, tmp_path: Path):
    assert "1 gap between intervals, 1 h 00 min in all" in said(
        "summary", gapped(tmp_path / "a.fsk", demo, 6, 3, _HOUR)
    )
