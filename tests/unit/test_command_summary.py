"""``foreshock summary``: several files, some of them bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from unit.synthetic import HEADER, Node, hog_interval

from tracer.commands import main
from tracer.recording import RecordingWriter


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path, node = tmp_path / "node.fsk", Node()
    with RecordingWriter(path, HEADER) as writer:
        for number in range(6):
            writer.write(hog_interval(node) if number == 3 else node.interval())
    return path


def foreshock(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["summary", *map(str, arguments)])


def test_the_verdict_is_the_first_thing_said(recording):
    result = foreshock(recording)
    assert result.exit_code == 0
    _title, verdict, *_ = result.stdout.split("\n\n")
    assert verdict.startswith("VERDICT  2 things stand out in 6 s")
    assert "hog[1234]" in result.stdout
    assert "\x1b" not in result.stdout


def test_one_bad_file_does_not_hide_the_others(recording, tmp_path):
    bad = tmp_path / "bad.fsk"
    bad.write_bytes(b"not a recording at all")
    result = foreshock(tmp_path / "none.fsk", bad, recording)
    assert result.exit_code == 4
    assert "VERDICT" in result.stdout
    assert result.stderr.count("foreshock: error:") == 2 and "hint:" in result.stderr


def test_a_cut_recording_says_so_beside_its_numbers(recording):
    recording.write_bytes(recording.read_bytes()[:-3000])
    result = foreshock(recording)
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())  # lines are broken where the path's length has them be
    assert "WARNING: " in told and "was cut off after" in told


def test_top_once_of_a_recording_says_where_it_is(recording):
    screen = CliRunner().invoke(main, ["top", "--once", str(recording)]).stdout
    assert "interval 6 of 6" in screen and "live" not in screen


def test_json_is_one_object_a_line_also_for_errors(recording, tmp_path):
    result = foreshock("--json", recording, tmp_path / "none.fsk")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["file"] == str(recording) and first["verdict"]["severity"] == "critical" and first["warning"] == ""
    assert second["error"] and second["file"].endswith("none.fsk")
    assert result.exit_code == 4
