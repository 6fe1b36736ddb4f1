"""demo where it can't trace: one sentence that says why, and the recording that comes with foreshock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracer.commands.demo import sample
from tracer.probes import all_probes
from tracer.recording import RecordingReader

MOST_BYTES = 150_000


def demo(folder: Path, *arguments: str, before: tuple[str, ...] = (), **environment: str):
    return subprocess.run(
        [*before, sys.executable, "-m", "tracer", "demo", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def is_shown(output: str) -> bool:
    return "VERDICT" in output and "hog[" in output.partition("Within normal:")[0] and "demo.fsk" in output


def test_the_sample_has_the_tables_of_todays_light_probes():
    with RecordingReader(sample()) as reader:
        recorded = {(window.probe, window.table) for windows in reader for window in windows}
        assert not reader.header["refused"]
    # No job runs in the demo: that table would be empty.
    light = [probe for probe in all_probes().values() if probe.tier == "light" and probe.name != "jobs"]
    missing = [f"{p.name}.{t.name}" for p in light for t in p.tables if (p.name, t.name) not in recorded]
    assert missing == [], "make it anew: foreshock demo -o tracer/sample/demo.fsk --overwrite"


def test_without_bcc_it_says_so_and_shows_the_sample(tmp_path):
    done = demo(tmp_path, FORESHOCK_PYTHON="/nonexistent")
    assert done.returncode == 0
    assert is_shown(done.stdout)
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("foreshock: ")]
    reason = "FORESHOCK_PYTHON=/nonexistent is no Python that has bcc" if os.geteuid() == 0 else "this needs root"
    assert sentence.startswith(f"foreshock: can't trace here: {reason}")
    assert list(tmp_path.iterdir()) == []


def test_without_privileges_it_says_so_and_shows_the_sample(tmp_path):
    drop: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("no setpriv (util-linux) to drop privileges with")
        drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    done = demo(tmp_path, before=drop)
    assert done.returncode == 0
    assert is_shown(done.stdout)
    assert done.stderr.count("can't trace here") == 1
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_replays_on_request(tmp_path):
    done = demo(tmp_path, "--replay")
    assert (done.returncode, done.stderr) == (0, "")
    assert is_shown(done.stdout)


def test_the_sample_is_small_whole_and_of_no_one_in_particular():
    raw = Path(sample()).read_bytes()
    assert len(raw) < MOST_BYTES
    with RecordingReader(sample()) as reader:
        intervals = list(reader)
        assert reader.warning == ""
        text = repr(reader.header) + "".join(repr(window.rows.tolist()) for windows in intervals for window in windows)
    assert len(intervals) >= 19
    assert "command_line" not in text
    assert [word for word in ("/home/", "/root", "/work") if word in text] == []
