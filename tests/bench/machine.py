"""The machine under test: what it is, its CPUs, compiled workloads, and figures out of repeated runs."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median

__all__ = [
    "CHECKOUT",
    "FIRST_CPU",
    "LAST_CPU",
    "Missing",
    "busy_percent",
    "command",
    "cpu_seconds",
    "describe",
    "folder",
    "pss_mb",
    "say",
    "workload",
]

CHECKOUT = Path(__file__).parents[2]
_CPUS = sorted(os.sched_getaffinity(0))
#: Agents run on the first CPU, workloads on the last: neither wakes up on the other's.
FIRST_CPU, LAST_CPU = _CPUS[0], _CPUS[-1]


class Missing(Exception):
    """Something the benchmark needs is not here; the text says what and how to get it."""


def say(text: str) -> None:
    """Tell what goes on, while it goes on."""
    print(text, file=sys.stderr, flush=True)


@cache
def command(name: str, packages: str, purpose: str) -> str:
    """Return the path of a command, installed first where that is possible. Raises Missing."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    apt = shutil.which("apt-get")
    if not shutil.which(name, path=path) and apt:
        say(f"bench: installing {packages} (apt-get), {purpose}")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update", "-qq"], ["install", "-qq", "--no-install-recommends", *packages.split()]):
            subprocess.run([apt, *step], env=quiet, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    found = shutil.which(name, path=path)
    if not found:
        raise Missing(f"{name} is needed {purpose}: install {packages}")
    return found


@cache
def folder() -> Path:
    """Return a scratch folder on a disk, removed at the end."""
    import atexit

    # Not /tmp, which may be memory: one of the workloads needs a disk's interrupts.
    path = tempfile.mkdtemp(prefix="foreshock-bench-", dir="/var/tmp")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


@cache
def workload(name: str) -> str:
    """Compile one of ``workloads/`` and return the program's path."""
    program = folder() / name
    source = Path(__file__).parent / "workloads" / f"{name}.c"
    gcc = command("gcc", "gcc libc6-dev", "to compile the workloads")
    subprocess.run([gcc, "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, source], check=True)
    return str(program)


def run(name: str, *arguments: object) -> float:
    """Run a workload pinned to the last CPU; returns what it measured, ns per round."""
    command = [workload(name), str(LAST_CPU), *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def busy_percent(seconds: float = 2.0) -> float:
    """Measure how busy all CPUs together are right now, in percent: other work makes other figures."""

    def sample() -> tuple[int, int]:
        times = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]))
        return sum(times[:8]), times[3] + times[4]

    total, idle = sample()
    time.sleep(seconds)
    later_total, later_idle = sample()
    return 100 * (1 - (later_idle - idle) / max(later_total - total, 1))


def pss_mb(*pids: int) -> float:
    """Return the memory of processes, what they share divided among those who share it."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process so far, to the nanosecond where the kernel keeps it so."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except FileNotFoundError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


def describe() -> list[tuple[str, str]]:
    """Return what a reader needs to judge or repeat the figures."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True)
    bcc = subprocess.run(
        ["/usr/bin/python3", "-c", "import bcc; print(bcc.__version__)"], capture_output=True, text=True
    )
    return [
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
        ("kernel", f"{os.uname().release}, {os.uname().version}"),
        ("CPU", f"{len(_CPUS)} × {models[0] if models else platform.machine()}{_virtual()}"),
        ("memory", f"{memory} MB"),
        ("bcc", bcc.stdout.strip() or "none"),
        ("Python", platform.python_version()),
        ("foreshock", commit.stdout.strip() or "no checkout"),
        # The least of some: what started the benchmark is busy for a moment.
        ("busy before the start", f"{min(busy_percent() for _ in range(3)):.1f} % of all CPUs"),
    ]


def _virtual() -> str:
    flags = Path("/proc/cpuinfo").read_text().partition("flags")[2].split("\n", 1)[0].split()
    return ", a virtual machine" if "hypervisor" in flags else ""


def shown(values: Sequence[float], form: str = "{:.3g}") -> str:
    """Show the median and the range of repeated runs."""
    return f"{form.format(median(values))} ({form.format(min(values))}–{form.format(max(values))})"
