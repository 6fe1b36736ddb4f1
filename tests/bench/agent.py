"""The agent's own footprint: memory, CPU, and the time it takes to read and fold a big node's maps."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from .bignode import CPUS, time_collect
from .machine import busy_percent, cpu_seconds, say, shown
from .objects import children
from .results import Check, Section, table
from .sides import recording

__all__ = ["measure"]

RSS_TARGET, PSS_TARGET = 60, 85  # MB
CPU_TARGET = 0.3  # percent of one CPU
FOLD_TARGET = 30  # ms
SECONDS, WARM_SECONDS = 60, 10
#: What holds a job up, without the watches over what the kernel itself is about to do.
HOLDING_UP = "runqueue,softirq,hardirq,napi,cpustate,cpustall,netdev"


def measure(rounds: int) -> Section:
    """Watch a whole ``foreshock record`` of all light probes for a minute, then fold a simulated big node."""
    section = Section("Recording: CPU and memory")
    with recording(cpu=None) as process:
        used, busy = _watched(process.pid, SECONDS)
        percent = 100 * used
        everyone = [process.pid, *children(process.pid)]
        resident = _kilobytes(process.pid, "Rss") / 1024
        proportional = sum(_kilobytes(pid, "Pss") for pid in everyone) / 1024
    say(f"agent: {percent:.2f} % of a CPU, {resident:.0f} MB resident")
    with recording(HOLDING_UP, cpu=None) as process:
        few_percent = 100 * _watched(process.pid, SECONDS)[0]
    say(f"agent: {few_percent:.2f} % of a CPU for {HOLDING_UP}")
    with recording(cpu=None, interval="50ms") as process:
        warm_ms = 50 * _watched(process.pid, WARM_SECONDS)[0]
    say(f"agent: {10 * percent:.1f} ms for an interval, {warm_ms:.1f} ms where they come every 50 ms")
    took = time_collect(max(20, 4 * rounds))
    fold = median(took)
    say(f"agent: {CPUS} CPUs folded in {shown(took)} ms")
    checks = [
        ("RSS of record, all light probes", f"{resident:.1f} MB", f"≤ {RSS_TARGET} MB", resident <= RSS_TARGET),
        ("PSS of all processes", f"{proportional:.1f} MB", f"≤ {PSS_TARGET} MB", proportional <= PSS_TARGET),
        ("CPU at 1 Hz, all light probes", f"{percent:.2f} % of one CPU", f"≤ {CPU_TARGET} %", percent <= CPU_TARGET),
        (
            "CPU at 1 Hz, scheduling, interrupts and network",
            f"{few_percent:.2f} % of one CPU",
            f"≤ {CPU_TARGET} %",
            few_percent <= CPU_TARGET,
        ),
        (
            f"maps of {CPUS} CPUs read and folded",
            f"{fold:.1f} ms",
            f"≤ {FOLD_TARGET} ms",
            fold <= FOLD_TARGET,
        ),
    ]
    section.checks = [Check(*check) for check in checks]
    section.blocks += [
        f"`foreshock record` of all light probes at 1 Hz (what the always-on agent takes: [alerts-delivery.md]"
        "(alerts-delivery.md#how-fast-and-what-it-takes)), watched for {SECONDS} s from the third second on "
        f"(all CPUs together were {busy:.1f} % busy). RSS is the recording process's, PSS is summed over it and its "
        f"{len(everyone) - 1} children; the loader that compiled the programs is gone by then. An interval takes "
        f"{10 * percent:.1f} ms of CPU; at 20 Hz, where caches still hold what the last one "
        f"used and memory is read in every fifth, {warm_ms:.1f} ms.",
        table(("", "measured", "target"), [check[:3] for check in checks[:4]]),
        f"Scheduling, interrupts and network are `--probes {HOLDING_UP}`; the other light probes watch what the kernel "
        "itself is about to do (memory, blocked tasks, kernel work, RCU, its log) and whose processes run.",
        f"One interval of a simulated node: the light probes' maps with the sizes they have on {CPUS} CPUs, every CPU "
        "with 10 interrupt lines, 6 softirq vectors and 1 NAPI that counted since the last interval; "
        f"copying the maps and making the windows took {shown(took)} ms ({len(took)} intervals).",
    ]
    return section


def _watched(pid: int, seconds: int) -> tuple[float, float]:
    """Return the share of a CPU that a process used, and how busy all CPUs were, percent."""
    # The start's own work is no part of running, nor is the first second's accounting.
    time.sleep(3)
    before, began = cpu_seconds(pid), time.monotonic()
    busy = busy_percent(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began), busy


def _kilobytes(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise ValueError(name)
