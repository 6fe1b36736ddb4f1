"""The report as a file: whole, private, and closed to everything that is not its own."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from unit.blackbox_samples import sample_box
from unit.deep_samples import write_deep
from unit.report_data import Data

from tracer.commands import main
from tracer.recording import RecordingWriter
from tracer.reports.html.page import page, room

EVIL_HOST = "</script><script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_deep(tmp_path_factory.mktemp("deep") / "node.fsk")


def report(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["report", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def refused(code: int, *arguments: str | Path) -> str:
    result = report(*arguments, code=code)
    assert result.stdout == "" and len(result.stderr.splitlines()) == 2, result.output
    return result.stderr


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_only_its_own_script_and_style_may_run_and_nothing_is_fetched(recording, tmp_path):
    report(recording, "-o", tmp_path / "out.html")
    html = (tmp_path / "out.html").read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    scripts = re.findall(r"<script>(.*?)</script>", html, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.S)
    allowed = dict(one.split(" ", 1) for one in policy.split("; "))
    assert allowed["default-src"] == "'none'"
    assert sorted(allowed["script-src"].split()) == sorted(map(hashed, scripts))
    assert allowed["style-src"] == hashed(style)
    assert not re.findall(r"<(?:link|img|iframe|script)[^>]* (?:src|href)=", html)
    assert "</" not in "".join(scripts)
    assert not re.search(r"url\(|@import", style)


def test_a_hosts_name_is_text_in_the_title(recording, tmp_path):
    path = tmp_path / "evil.fsk"
    with RecordingWriter(path, {"host": EVIL_HOST}):
        pass
    report(path, "-o", tmp_path / "out.html")
    html = (tmp_path / "out.html").read_text()
    assert html.count("</script>") == page("", "").count("</script>")
    assert r"&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;\u202e</title>" in html


def test_licences_of_what_is_inside_are_inside():
    html = page("", "")
    for name in ("uplot", "d3-scale-chromatic"):
        assert re.search(rf"^{name} \d", html, re.M)
    assert html.count("<!--") == html.count("-->") == 1


def test_its_name_follows_the_recordings_and_no_file_is_replaced_unasked(recording, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "report: node.html" in report(recording).stderr
    written = tmp_path / "node.html"
    assert written.stat().st_mode & 0o777 == 0o600
    assert "exists" in refused(5, recording)
    report(recording, "--overwrite")
    assert [path.name for path in tmp_path.iterdir()] == ["node.html"]
    assert report(recording, "-o", "-").stdout == written.read_text()


def test_what_can_not_be_is_one_line_with_a_hint(recording, tmp_path):
    assert "can't be read" in refused(4, tmp_path / "none.fsk")
    assert "too small" in refused(2, recording, "--max-size", "100KiB")
    assert "needs a name" in refused(2, "-")
    assert "no such file" in refused(5, recording, "-o", tmp_path / "no" / "x.html")


def test_a_damaged_recording_is_reported_as_far_as_it_goes_and_the_page_says_so(recording, tmp_path):
    path = tmp_path / "damaged.fsk"
    path.write_bytes(recording.read_bytes()[:-200] + bytes(200))
    assert "damaged" in report(path, "-o", tmp_path / "out.html", code=4).stderr
    html = (tmp_path / "out.html").read_text()
    (data,) = re.findall(r'<script id="data" type="application/octet-stream">(.*?)</script>', html)
    chips = {one["what"]: one for one in Data(data).tree["quality"]}
    assert chips["recording"]["state"] == "bad" and "damaged" in chips["recording"]["text"]


def test_a_black_box_is_a_report_with_the_alerts_that_were_told(tmp_path):
    report(sample_box(tmp_path / "cu39.fbx"), "-o", tmp_path / "out.html")
    (data,) = re.findall(r'<script id="data"[^>]*>(.*?)</script>', (tmp_path / "out.html").read_text())
    tree = Data(data).tree
    facts = dict(tree["facts"])
    assert facts["host"] == "cu39" and facts["command line"] == "unknown"  # recorded before it was kept
    assert tree["series"]
    (told,) = (one for one in tree["marks"] if one["kind"] == "alert")
    assert told["alert"]["rule"] == "soft-lockup" and told["alert"]["severity"] == "page"
    # What people were told stands first.
    assert tree["headline"].startswith(f"The agent told a page: {told['alert']['title']}. Besides, ")
    assert tree["findings"][0]["what"].startswith("alert soft-lockup: ") and tree["severity"] == "critical"
    assert tree["findings"][0]["next"] == told["alert"]["next"] and tree["findings"][0]["time_ns"] == told["start_ns"]
    said = " ".join(report(tmp_path / "cu39.fbx", "--text").stdout.split())
    assert f"VERDICT {tree['headline']}" in said


def test_a_black_box_that_lacks_something_says_so(tmp_path):
    path = sample_box(tmp_path / "cu39.fbx")
    data = bytearray(path.read_bytes())
    places = [at for at in range(0, len(data), 4096) if data[at : at + 4] == b"\x89FBR"]
    data[places[2] + 60] ^= 1
    path.write_bytes(data)
    result = report(path, "-o", tmp_path / "out.html", code=4)
    assert "The black box lacks 1 record damaged" in result.stderr


def test_a_page_has_room_for_its_data_within_its_size():
    size = 1 << 20
    assert len(page("x" * room(size), "title").encode()) <= size
