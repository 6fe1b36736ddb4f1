"""Close-ups of real faults: what the page says, what is kept, and that nothing stays, whoever dies."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.machine import pss_mb
from bench.objects import all_ids, children, orphans, owned
from kernel.command import CHECKOUT, FORESHOCK, environment
from unit.report_data import Data

from tracer.analysis.cost import own_cost
from tracer.analysis.rows import has
from tracer.analysis.summary import Summary
from tracer.closeup.standby import NAME as STANDBY
from tracer.closeup.worker import NAME as WORKER
from tracer.recording import RecordingReader

_BOUND = 60.0


def _wait(until: Callable[[], Any], process: subprocess.Popen[bytes], said: Path) -> Any:
    deadline = time.monotonic() + _BOUND
    while not (found := until()):
        assert process.poll() is None and time.monotonic() < deadline, said.read_text()
        time.sleep(0.05)
    return found


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run an agent that has seen its first interval."""
    command = [*FORESHOCK, "agent", "--sink", f"json:{folder / 'alerts'}", "--state", str(folder / "state"), *options]
    with open(folder / "said", "w") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment())
    try:
        _wait((folder / "state").exists, process, folder / "said")
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()


@contextmanager
def fault(name: str) -> Iterator[None]:
    """Make a fault for as long as the block lasts."""
    command = [*FORESHOCK, "inject", name, "--for", "60s", "--yes"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=CHECKOUT, env=environment()) as process:
        try:
            yield
        finally:
            process.terminate()


def _named(name: str, agent: int) -> list[int]:
    """Return the processes below the agent that are called so."""
    below = children(agent)
    below += [other for pid in below for other in children(pid)]
    return [pid for pid in below if _comm(pid) == name]


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _share(recording: str) -> float:
    """Return what the deep programs took of one CPU while the kernel accounted for them."""
    summary = Summary()
    with RecordingReader(recording) as reader:
        for windows in reader:
            summary.add_interval(windows)
    cost = own_cost(summary)
    programs = [one for one in cost.programs if one.program.startswith("deep ")] if cost else []
    return sum(one.share for one in programs if one.sampled_ns)


def _evident(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [alert for alert in map(json.loads, lines) if alert.get("evidence")]


def _options(folder: Path) -> tuple[str, ...]:
    return (
        "--interval",
        "500ms",
        "--closeup",
        "page",
        "--closeup-for",
        "2s",
        "--closeup-folder",
        str(folder / "closeups"),
    )


def test_a_page_is_followed_by_a_report_that_names_who_did_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with watching(tmp_path, *_options(tmp_path)) as agent, fault("fs-error"):
        (alert, *_) = _wait(lambda: _evident(tmp_path / "alerts"), agent, tmp_path / "said")
        assert not _named(WORKER, agent.pid)
        resident = pss_mb(*_named(STANDBY, agent.pid))
    told = [json.loads(line) for line in (tmp_path / "alerts").read_text().splitlines()]
    (first, *_) = (one for one in told if one["id"] == alert["id"])
    assert alert["rule"] == "filesystem-error" and "evidence" not in first and alert["sequence"] > first["sequence"]
    evidence = alert["evidence"]
    # Between two errors it sleeps, which is no news.
    assert evidence["stacks"] and not any("nanosleep" in line for line in evidence["stacks"])
    (data,) = re.findall(r'<script id="data"[^>]*>(.*?)</script>', Path(evidence["report"]).read_text())
    (finding, *_) = Data(data).tree["findings"]
    assert finding["what"].startswith("alert filesystem-error: ext4 on ") and finding["who"].startswith("by brokenfs")
    assert finding["time_ns"] == first["began_ns"] and finding["until_ns"] > alert["began_ns"]
    for path in map(Path, (evidence["recording"], evidence["report"])):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.parent == tmp_path / "closeups"
    assert stat.S_IMODE((tmp_path / "closeups").stat().st_mode) == 0o700
    assert "</html>" in Path(evidence["report"]).read_text()[-100:]
    seen: dict[str, list[int]] = {}
    programs: set[bytes] = set()
    with RecordingReader(evidence["recording"]) as reader:
        for windows in reader:
            for window in windows:
                seen.setdefault(window.probe, []).append(window.start_ns)
                if has(window.rows, "program"):
                    programs.update(window.rows["program"].tolist())
        assert reader.warning == "" and reader.header["pid"] == agent.pid
    (cost,) = (line for line in (tmp_path / "said").read_text().splitlines() if "of CPU time" in line)
    with capsys.disabled():
        share = _share(evidence["recording"])
        print(f"\n{cost.rpartition(', ')[2]}; deep programs {share:.1%} of one CPU; standing by {resident:.1f} MB PSS")
    assert {b"agent", b"on_sched_switch", b"deep on_sched_switch"} <= programs
    # The seconds before have what always runs, those after the deep probes as well.
    assert min(seen["softirq"]) < first["at_ns"] < min(seen["oncpu"]) and {"offcpu", "ledger"} <= seen.keys()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_ended_in_the_middle_it_leaves_nothing_attached_and_nobody(tmp_path: Path, number: signal.Signals):
    before = all_ids()
    with watching(tmp_path, *_options(tmp_path), "--closeup-for", "60s", "--closeup-pause", "1h") as agent:
        (standby,) = _named(STANDBY, agent.pid)
        with fault("fs-error"):
            (worker,) = _wait(lambda: _named(WORKER, agent.pid), agent, tmp_path / "said")
            _wait(lambda: owned(worker)["link"], agent, tmp_path / "said")
        agent.send_signal(number)
        agent.wait(20)
    assert [path.name for path in (tmp_path / "closeups").iterdir()] == []
    deadline = time.monotonic() + _BOUND
    while any(Path(f"/proc/{pid}").exists() for pid in (standby, worker)) or orphans(before):
        assert time.monotonic() < deadline
        time.sleep(0.05)
