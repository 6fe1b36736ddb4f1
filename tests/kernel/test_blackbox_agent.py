"""The whole way: an agent that is killed, its box, the story, the evidence."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tracer.blackbox.box import Box
from tracer.errors import RecordingError
from tracer.units import duration


def _foreshock(checkout: Path, *arguments: str | Path) -> str:
    command = [sys.executable, "-m", "tracer", *map(str, arguments)]
    return subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True, timeout=60).stdout


def _intervals(path: Path) -> int:
    with suppress(RecordingError), Box(path) as box:
        return len(list(box.intervals(1 << 62)))
    return 0


def test_a_killed_agent_leaves_everything_up_to_its_last_interval(checkout: Path, tmp_path: Path):
    path = tmp_path / "box"
    command = [sys.executable, "-m", "tracer", "agent", "--interval", "500ms", "--blackbox", str(path)]
    command += ["--sink", f"json:{tmp_path / 'alerts'}", "--state", str(tmp_path / "state")]
    with open(tmp_path / "said", "w") as said:
        agent = subprocess.Popen(command, cwd=checkout, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        until = time.monotonic() + 60
        while _intervals(path) < 6:
            assert time.monotonic() < until and agent.poll() is None, (tmp_path / "said").read_text()
            time.sleep(0.2)
    finally:
        agent.kill()
        killed = time.time()
        agent.wait()
    until = time.monotonic() + 10
    while json.loads(_foreshock(checkout, "postmortem", path, "--json"))["ending"] == "live":
        assert time.monotonic() < until, "the writer outlives its agent"
        time.sleep(0.2)
    tree = json.loads(_foreshock(checkout, "postmortem", path, "--json"))
    assert tree["ending"] == "agent-gone" and "still in the same boot" in tree["sentences"][0]
    # An interval, and on a busy machine the time that the agent and the disk did not get.
    assert killed - tree["last_record_unix_s"] < 10, duration((killed - tree["last_record_unix_s"]) * 1e9)
    assert tree["last"]["time"]["intervals"] >= 6 and tree["missing"] == {}
    recorded = {f"{one['series'].split('.')[0]}" for one in tree["last"]["series"]}
    assert {"runqueue", "softirq"} <= recorded
    _foreshock(checkout, "bundle", path, "-o", tmp_path / "b.tar.gz", "--redact")
    assert "ok" in _foreshock(checkout, "bundle", "--verify", tmp_path / "b.tar.gz")
