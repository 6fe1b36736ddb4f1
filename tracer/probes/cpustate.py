"""Where each CPU's time goes: tasks, idle, softirqs, hard interrupts; disjoint, so the four add up to the interval.

Measured from entry to exit, not sampled by the tick: softirq time over an idle CPU is seen.
The other kernel probes build on this one's row per CPU (what runs, what is open, who ran last).

Overhead: about 45 ns per context switch, 20 ns per softirq or interrupt, above an empty program.
Caveat: a kernel may not show every event (``unseen``, in context switches; the other tracepoints have no second count).
Where the idle task leaves and another one came, the switch between was not shown, and all of that stay counts as idle.
Caveat: a CPU that was offline at either end of an interval has no row for it (``offline``, in CPUs and intervals).
Caveat: a CPU that has not switched since the start shows nothing until its first switch.
Caveat: what runs while the rows are read may be told in the next interval as what ran before (below 0.1 ms; the parts
add up all the same).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracer.probe import Column, Loss, Map, Member, Probe, Table, Tracepoint, Vectors

_ROW = np.dtype([("cpu", "u4"), ("running_ns", "u8"), ("idle_ns", "u8"), ("softirq_ns", "u8"), ("hardirq_ns", "u8")])
#: Reading the rows takes no longer, unless the reader itself had to wait for its CPU.
_READING_NS = 1_000_000
_PARTS = ("running_ns", "idle_ns", "softirq_ns", "hardirq_ns")


def _derive(before: np.ndarray, after: np.ndarray, start_ns: int, end_ns: int) -> tuple[np.ndarray, Mapping[str, int]]:
    """Difference two snapshots of ``cpus``, each extended by what is still running."""
    parts = _extended(after, end_ns) - _extended(before, start_ns)
    new = before["switches"] == 0
    missing = np.where(new, end_ns - start_ns - parts.sum(axis=1), 0)
    # Until its first switch a CPU ran one task.
    parts[np.arange(len(parts)), np.where(after["first_pid"] == 0, _PARTS.index("idle_ns"), 0)] += missing
    (seen,) = np.nonzero((after["switches"] > 0) & (missing >= 0))
    rows, parts = np.zeros(len(seen), dtype=_ROW), parts[seen]
    rows["cpu"] = seen
    clamped = int((parts < -_READING_NS).sum())
    for name, part in zip(_PARTS, _without_negative(parts).T, strict=True):
        rows[name] = part
    return rows, {"clamped": clamped}


def _without_negative(parts: np.ndarray) -> np.ndarray:
    """Take what is below zero off the other parts of its row: the sums stay.

    What ran between a row's copy and the interval's end was told as what ran at the copy; here it is taken back.
    """
    for row in np.flatnonzero((parts < 0).any(axis=1)):
        told = np.maximum(parts[row], 0)
        for part in np.argsort(-told):  # the largest first: most likely it was that
            told[part] -= min(told[part], told.sum() - max(parts[row].sum(), 0))
        parts[row] = told
    return parts


def _extended(cpus: np.ndarray, now_ns: int) -> np.ndarray:
    """Return the cumulated times, shape (cpus, parts), as they would be if everything open ended now.

    However it is shared out, it sums up to ``now_ns`` less the time of the CPU's first switch.
    """
    total = {part: cpus[part].astype("i8") for part in _PARTS}
    stays = cpus["stays"][np.arange(len(cpus)), cpus["switches"] % cpus["stays"].shape[1]]
    open_hardirq = _open_ns(cpus["hardirq_entered_ns"], now_ns)
    total["hardirq_ns"] += open_hardirq
    inside = total["hardirq_ns"] - cpus["softirq_hardirq_ns"].astype("i8")
    open_softirq = _open_ns(cpus["softirq_entered_ns"], now_ns)
    total["softirq_ns"] += np.where(cpus["softirq_entered_ns"] > 0, open_softirq - inside, 0)
    stolen = total["softirq_ns"] + total["hardirq_ns"] - (stays["softirq_ns"] + stays["hardirq_ns"]).astype("i8")
    own = np.where(stays["started_ns"] > 0, _open_ns(stays["started_ns"], now_ns) - stolen, 0)
    idle = stays["pid"] == 0
    total["idle_ns"] += np.where(idle, own, 0)
    total["running_ns"] += np.where(idle, 0, own)
    return np.stack([total[part] for part in _PARTS], axis=1)


def _open_ns(since_ns: np.ndarray, now_ns: int) -> np.ndarray:
    return np.where(since_ns > 0, now_ns - since_ns.astype("i8"), 0)


PROBE = Probe(
    name="cpustate",
    reader="unseen",
    summary="where each CPU's time goes: tasks, idle, softirqs, hard interrupts",
    tier="light",
    hooks=(
        Tracepoint("sched:sched_switch", ("bool", "struct task_struct *", "struct task_struct *")),
        Tracepoint("irq:softirq_entry", ("unsigned int",)),
        Tracepoint("irq:softirq_exit", ("unsigned int",)),
        Tracepoint("irq:irq_handler_entry", ("int", "struct irqaction *")),
        Tracepoint("irq:irq_handler_exit", ("int", "struct irqaction *", "int")),
        Vectors("entry"),
        Vectors("exit"),
    ),
    members=(
        Member("task_struct.pid"),
        Member("task_struct.tgid"),
        Member("task_struct.prio"),
        Member("task_struct.comm"),
    ),
    maps=(Map("cpus", "cpu_row", ("cpu",)),),
    tables=(
        Table(
            "time",
            help="time per CPU by what it did",
            map="cpus",
            by=("cpu",),
            writes=("writes", "softirq_writes"),
            derive=_derive,
            columns=(
                Column("running_ns", "ns", "in tasks, without the interrupts inside"),
                Column("idle_ns", "ns", "in the idle task, without the interrupts inside"),
                Column("softirq_ns", "ns", "in softirqs, without the hard interrupts inside"),
                Column("hardirq_ns", "ns", "in device interrupts and vectors"),
            ),
        ),
        Table(
            "check",
            help="the kernel's own count of context switches beside the programs', since the start",
            gauges=("made", "seen"),
            columns=(
                Column("made", "switches", "by /proc/stat, all CPUs"),
                Column("seen", "switches", "shown to the programs"),
            ),
        ),
    ),
    losses=(
        Loss("negative", "cpus", "negative", "differences below zero, not counted"),
        Loss("unmatched", "cpus", "unmatched", "softirqs and interrupts seen only to begin or only to end"),
        Loss("events_lost", "cpus", "events_lost", "single events dropped: the ring buffer was full"),
        Loss(
            "clamped", "", "", "parts of an interval that were told in the one before: it was read late", harmless=True
        ),
        Loss("stale", "", "", "CPUs taken for as they were an interval ago: written to all the time", harmless=True),
        Loss("offline", "", "", "CPUs without a row: offline at either end of an interval"),
    ),
)
