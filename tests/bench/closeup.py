"""What ``--closeup`` costs: standing by, and close-ups of a real fault on a node that does nothing else."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from tracer.analysis.cost import own_cost
from tracer.analysis.summary import Summary
from tracer.closeup.standby import NAME as STANDBY
from tracer.closeup.worker import NAME as WORKER
from tracer.recording import RecordingReader

from .machine import CHECKOUT, cpu_seconds, folder, pss_mb, say, shown
from .objects import children
from .results import Check, Section, table

__all__ = ["measure"]

SECONDS, WAIT_SECONDS, PATIENCE_SECONDS = 10, 10, 120
MOST_ROUNDS = 3
CPU_TARGET, RSS_TARGET, STANDBY_TARGET = 2.0, 160, 10  # s, MB, MB


def measure(rounds: int) -> Section:
    """Have up to three close-ups made, each by an agent of its own, for a file system that reports an error."""
    section = Section("Close-ups")
    found = [_closeup() for _ in range(min(rounds, MOST_ROUNDS))]
    cpu_s, resident, standing, waiting, share, size = zip(*found, strict=True)
    say(f"closeup: {shown(cpu_s)} s of CPU time, {shown(resident)} MB, standing by {shown(standing)} MB")
    checks = [
        (f"CPU time of a close-up of {SECONDS} s", f"{median(cpu_s):.1f} s", CPU_TARGET, "s", median(cpu_s)),
        ("its memory at the peak", f"{median(resident):.0f} MB", RSS_TARGET, "MB", median(resident)),
        ("standing by, PSS", f"{median(standing):.1f} MB", STANDBY_TARGET, "MB", median(standing)),
    ]
    section.checks = [Check(what, told, f"≤ {most} {unit}", value <= most) for what, told, most, unit, value in checks]
    section.blocks += [
        f"`foreshock agent --closeup page --closeup-for {SECONDS}s`, `foreshock inject fs-error`, {len(found)} times; "
        "loader, recording and report are included, the agent and the fault are not. Each had been standing by for "
        f"{WAIT_SECONDS} s before.",
        table(
            ("", "median", "all"),
            [
                ("CPU time, s", f"{median(cpu_s):.2f}", shown(cpu_s)),
                ("resident at the peak, MB", f"{median(resident):.0f}", shown(resident)),
                ("standing by, PSS, MB", f"{median(standing):.1f}", shown(standing)),
                ("standing by, CPU time, s", f"{median(waiting):.2f}", shown(waiting)),
                ("deep programs meanwhile, % of a CPU", f"{median(share):.2f}", shown(share)),
                ("recording and report, KB", f"{median(size):.0f}", shown(size)),
            ],
        ),
    ]
    return section


def _closeup() -> tuple[float, float, float, float, float, float]:
    """Return CPU seconds, peak MB, standing by: MB and CPU seconds, the deep programs' share in percent, KB."""
    place = folder() / "closeup"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    with _agent(place) as agent:
        (standby,) = _wait(lambda: _below(agent, STANDBY), agent)
        before = cpu_seconds(standby)
        time.sleep(WAIT_SECONDS)
        waiting, standing = cpu_seconds(standby) - before, pss_mb(standby)
        with _process("inject", "fs-error", "--for", f"{SECONDS + WAIT_SECONDS}s", "--yes"):
            (worker,) = _wait(lambda: _below(agent, WORKER), agent)
            peaks = [0.0]

            def told() -> dict[str, Any] | None:
                peaks.append(_peak_mb(worker))
                return _evidence(place)

            evidence = _wait(told, agent)
        cpu_s = float(_wait(lambda: _said(place), agent).rpartition(", ")[2].partition(" ")[0])
    files = [Path(evidence[what]) for what in ("recording", "report")]
    return cpu_s, max(peaks), standing, waiting, 100 * _share(files[0]), sum(one.stat().st_size for one in files) / 1024


@contextlib.contextmanager
def _agent(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    options = ["--closeup", "page", "--closeup-for", f"{SECONDS}s", "--closeup-folder", str(place / "kept")]
    options += ["--sink", f"json:{place / 'alerts'}", "--state", str(place / "state")]
    with open(place / "said", "wb") as said, _process("agent", *options, said=said) as agent:
        _wait((place / "state").exists, agent)
        yield agent


@contextlib.contextmanager
def _process(*arguments: str, said: object = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    call = [sys.executable, "-m", "tracer", *arguments]
    process = subprocess.Popen(call, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=said, stderr=said)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def _wait(until: Callable[[], Any], agent: subprocess.Popen[bytes]) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := until()):
        if agent.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("no close-up was made")
        time.sleep(0.05)
    return found


def _below(agent: subprocess.Popen[bytes], name: str) -> list[int]:
    """Return the processes below the agent that are called so."""
    below = children(agent.pid)
    below += [other for pid in below for other in children(pid)]
    return [pid for pid in below if _field(pid, "Name") == name]


def _field(pid: int, name: str) -> str:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:")), "")


def _peak_mb(pid: int) -> float:
    return int((_field(pid, "VmHWM") or "0 kB").split()[0]) / 1024


def _evidence(place: Path) -> dict[str, Any] | None:
    alerts = place / "alerts"
    lines = alerts.read_text().splitlines() if alerts.exists() else []
    return next((alert["evidence"] for alert in map(json.loads, lines) if alert.get("evidence")), None)


def _said(place: Path) -> str:
    return next((line for line in (place / "said").read_text().splitlines() if "s of CPU time" in line), "")


def _share(recording: Path) -> float:
    """Return what the deep programs took of one CPU while the kernel accounted for them."""
    summary = Summary()
    with RecordingReader(recording) as reader:
        for windows in reader:
            summary.add_interval(windows)
    cost = own_cost(summary)
    return (
        sum(one.share for one in cost.programs if one.program.startswith("deep ") and one.sampled_ns) if cost else 0.0
    )
