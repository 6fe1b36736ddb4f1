"""How late softirqs start and how long they run, per CPU and vector.

Overhead: about 15 ns per raise, 30 ns per entry and 25 ns per exit, above an empty program.
Caveat: a softirq raised again before its vector runs is served by that run, or by one more: then that one's delay
begins with the latest such raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.layouts import constants
from tracer.probe import Column, Events, Loss, Map, Probe, Table, Tracepoint
from tracer.probes._holders import CGROUP, HOLDER_PRIO, fitted, holders

_DELAY = constants("softirq")["SOFTIRQ_WORST_DELAY"]

_WORST = np.dtype(
    [
        ("time_ns", "u8"),
        ("kind", "u4"),
        ("duration_ns", "u8"),
        ("cpu", "u4"),
        ("vector", "u4"),
        ("pid", "u4"),
        ("comm", "S16"),
        ("cgroup", CGROUP),
        ("holder_prio", "i4"),
        ("holder_ns", "u8"),
        ("softirq_ns", "u8"),
        ("hardirq_ns", "u8"),
    ]
)


def _decode(events: np.ndarray, names: Any) -> np.ndarray:
    """Turn ``struct softirq_worst`` into rows with the task that had the CPU during the delay or the run."""
    rows = np.zeros(len(events), dtype=_WORST)
    for row, event in zip(rows, events, strict=True):
        end_ns = int(event["event"]["time_ns"])
        found = holders(event["cpu"], end_ns - int(event["duration_ns"]), end_ns)
        row["time_ns"], row["cpu"] = end_ns, event["event"]["cpu"]
        for name in ("kind", "duration_ns", "vector", "softirq_ns", "hardirq_ns"):
            row[name] = event[name]
        row["pid"], row["comm"] = found.pid, found.comm
        row["cgroup"] = fitted(names.cgroup_of(found.pid)) if found.pid else b""
        row["holder_prio"], row["holder_ns"] = found.prio, found.holder_ns
    return rows


PROBE = Probe(
    name="softirq",
    summary="how late softirqs start and how long they run, per CPU and vector",
    tier="light",
    requires=("cpustate",),
    aliases=("softirqs", "softirqslower"),
    settings={"SOFTIRQ_THRESHOLD_NS": 5_000_000},
    hooks=(
        Tracepoint("irq:softirq_raise", ("unsigned int",), timed=False),
        Tracepoint("irq:softirq_entry", ("unsigned int",)),
        Tracepoint("irq:softirq_exit", ("unsigned int",)),
    ),
    maps=(Map("softirq_rows", "softirq_row", ("cpu", "SOFTIRQ_VECTORS")),),
    tables=(
        Table(
            "delay",
            help="time from the raise to the entry that serves it",
            map="softirq_rows",
            by=("cpu", "vector"),
            histogram="delay",
            columns=(Column("delay", "s", "time from raise to entry"),),
        ),
        Table(
            "run",
            help="run time, without the hard interrupts inside",
            map="softirq_rows",
            by=("cpu", "vector"),
            histogram="run",
            columns=(Column("run", "s", "time from entry to exit, less hard interrupts"),),
        ),
        Events(
            "worst",
            help="softirqs that came late (kind 1) or ran long (kind 2), with what had the CPU meanwhile",
            layout="softirq_worst",
            rank="duration_ns",
            decode=_decode,
            columns=(
                Column("kind", "", "1 delay, 2 run"),
                Column("duration_ns", "ns", "length of the delay or the run"),
                HOLDER_PRIO,
                Column("softirq_ns", "ns", "of a delay: spent in other softirqs"),
                Column("hardirq_ns", "ns", "spent in hard interrupts"),
            ),
        ),
    ),
    losses=(
        Loss("unraised", "softirq_rows", "unraised", "runs whose raise was not seen: no delay counted"),
        Loss("negative", "softirq_rows", "negative", "delays below zero, not counted"),
        Loss(
            "suppressed", "softirq_rows", "delay_limit.suppressed", "late softirqs not told one by one", harmless=True
        ),
        Loss("suppressed", "softirq_rows", "run_limit.suppressed", "long softirqs not told one by one", harmless=True),
    ),
)
