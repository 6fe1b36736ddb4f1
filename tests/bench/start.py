"""From typing the command to the first window of data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from .machine import CHECKOUT, folder, say, shown
from .results import Check, Section, table

__all__ = ["measure"]

TARGET_SECONDS = 1.0
INTERVAL_SECONDS = 1.0


def measure(rounds: int) -> Section:
    """Time ``foreshock record --interval 1s`` until its first window is in the file."""
    warm = [_first_window() for _ in range(rounds + 1)][1:]
    say(f"start: {shown(warm)} s beyond the interval")
    cold = []
    for _ in range(min(rounds, 3)):
        _forget_files()
        cold.append(_first_window())
    say(f"start: {shown(cold)} s after the files were dropped from memory")
    stages = [_stages() for _ in range(rounds)]
    late = median(warm)
    section = Section("From the command to the first window")
    section.checks = [
        Check(
            "first window, beyond the interval",
            f"{late:.2f} s",
            f"≤ {TARGET_SECONDS} s",
            late <= TARGET_SECONDS,
        ),
        Check("the same, files not in memory", f"{median(cold):.2f} s", "", None),
    ]
    rows = [(name, f"{1e3 * median(stage[name] for stage in stages):.0f}") for name in stages[0]]
    section.blocks += [
        "`foreshock record --interval 1s` of all light probes, from the start of the process until the first window is "
        f"in the file, less the interval: {shown(warm)} s. With the files of both Pythons, numpy and LLVM dropped from "
        f"the page cache before (as far as no other process uses them): {shown(cold)} s.",
        "Where the time goes, medians; “loader: …” is inside “attach”:",
        table(("stage", "ms"), rows),
    ]
    return section


def _first_window() -> float:
    file = folder() / "start.fsk"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tracer", "record", "--quiet", "--interval", f"{INTERVAL_SECONDS:g}s"]
    command += ["--for", f"{INTERVAL_SECONDS:g}s", "-o", str(file)]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    header = _size_beyond(file, 0, process)
    _size_beyond(file, header, process)
    took = time.monotonic() - began - INTERVAL_SECONDS
    process.communicate()
    return took


def _size_beyond(file: Path, size: int, process: subprocess.Popen[bytes]) -> int:
    """Wait until the file is there and larger than ``size``; returns its size then."""
    while True:
        try:
            found = file.stat().st_size
        except FileNotFoundError:
            found = 0
        if found > size:
            return found
        if process.poll() is not None and file.stat().st_size <= size:
            raise RuntimeError(f"foreshock record ended: {process.stderr.read().decode() if process.stderr else ''}")
        time.sleep(0.001)


def _forget_files() -> None:
    """Drop what a start reads from the page cache, and nothing else."""
    os.sync()
    for path in _files():
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _files() -> Iterator[Path]:
    folders = [CHECKOUT / "tracer", CHECKOUT / "bpf", Path(sysconfig.get_path("purelib")), Path("/usr/lib/python3")]
    folders += [Path(sysconfig.get_path("stdlib")), *Path("/usr/lib").glob("python3.*")]
    for path in folders:
        yield from (file for file in path.rglob("*") if file.is_file())
    yield Path(sys.executable).resolve()
    yield Path("/usr/bin/python3").resolve()
    for pattern in ("libbcc*.so*", "libLLVM*.so*", "libclang*.so*"):
        for root in ("/usr/lib", "/lib64", "/usr/lib64"):
            yield from Path(root).glob(f"*/{pattern}")
            yield from Path(root).glob(pattern)


def _stages() -> dict[str, float]:
    code = "from tests.bench.stages import main; main()"
    began = time.time()
    command = [sys.executable, "-c", code, repr(began)]
    done = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
