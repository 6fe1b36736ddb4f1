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
from typing import NamedTuple

import numpy as np

from tracer.layouts import layout
from tracer.probe import Column, Loss, Map, Member, Probe, Table, Tracepoint, Vectors

_ROW = np.dtype([("cpu", "u4"), ("running_ns", "u8"), ("idle_ns", "u8"), ("softirq_ns", "u8"), ("hardirq_ns", "u8")])
#: Reading the rows takes no longer, unless the reader itself had to wait for its CPU.
_READING_NS = 1_000_000
_PARTS = ("running_ns", "idle_ns", "softirq_ns", "hardirq_ns")
_TOLD = (*_PARTS, "softirq_hardirq_ns", "softirq_entered_ns", "hardirq_entered_ns", "switches", "first_pid")
_TOLD_OF_STAYS = ("started_ns", "softirq_ns", "hardirq_ns", "pid")
_CPU = layout("cpustate", "cpu_row")
_STAY, (_STAYS,) = _CPU["stays"].base, _CPU["stays"].shape


class _Told(NamedTuple):
    """One CPU at one moment: cumulated times, ns, as if everything open ended now, and how they began.

    However the times are shared out, they sum up to now less the time of the CPU's first switch.
    """

    parts: tuple[int, int, int, int]
    switches: int
    rested_first: bool


def _derive(before: np.ndarray, after: np.ndarray, start_ns: int, end_ns: int) -> tuple[np.ndarray, Mapping[str, int]]:
    """Difference two snapshots of ``cpus``, each extended by what is still running."""
    rows, clamped = [], 0
    for cpu, (was, now) in enumerate(zip(_told(before, start_ns), _told(after, end_ns), strict=True)):
        parts = [part - earlier for part, earlier in zip(now.parts, was.parts, strict=True)]
        if not was.switches:
            missing = end_ns - start_ns - sum(parts)
            if missing < 0:
                continue
            # Until its first switch a CPU ran one task.
            parts[1 if now.rested_first else 0] += missing
        if not now.switches:
            continue
        if min(parts) < 0:
            clamped += sum(part < -_READING_NS for part in parts)
            parts = _without_negative(parts)
        rows.append((cpu, *parts))
    return np.array(rows, dtype=_ROW), {"clamped": clamped}


def _without_negative(parts: list[int]) -> list[int]:
    """Take what is below zero off the other parts of its CPU: the sum stays.

    What ran between a row's copy and the interval's end was told as what ran at the copy; here it is taken back.
    """
    told, left = [max(part, 0) for part in parts], max(sum(parts), 0)
    for part in sorted(range(len(told)), key=lambda part: -told[part]):  # the largest first: most likely it was that
        told[part] -= min(told[part], sum(told) - left)
    return told


def _told(cpus: np.ndarray, now_ns: int) -> list[_Told]:
    """Return what each row says at ``now_ns``."""
    # As words of 64 bits, because numpy takes structs apart member by member; and then as plain numbers, which for a
    # few CPUs takes a tenth of the time. A pid comes with a neighbour (tgid, padding) that is 0 if it is.
    words = cpus.view("i8").reshape(len(cpus), -1)
    latest = words[:, _FIRST[_TOLD.index("switches")]] % _STAYS
    members = words[np.arange(len(cpus))[:, None], _FIRST + _STEP * latest[:, None]]
    return [_ended(row, now_ns) for row in members.tolist()]


def _ended(members: list[int], now_ns: int) -> _Told:
    running, idle, softirq, hardirq, inside, softirq_since, hardirq_since, switches, first, *stay = members
    stay_since, softirq_then, hardirq_then, task = stay
    if hardirq_since:
        hardirq += now_ns - hardirq_since
    if softirq_since:
        softirq += now_ns - softirq_since - (hardirq - inside)
    if stay_since:
        own = now_ns - stay_since - (softirq + hardirq - softirq_then - hardirq_then)
        if task:
            running += own
        else:
            idle += own
    return _Told((running, idle, softirq, hardirq), switches, not first)


def _word(row: np.dtype, member: str) -> int:
    offset: int = row.fields[member][1]  # type: ignore[index]
    return offset // 8


#: The members' words, where it is the first stay's; and how many there are to the next stay's.
_FIRST = np.array(
    [*(_word(_CPU, name) for name in _TOLD), *(_word(_CPU, "stays") + _word(_STAY, name) for name in _TOLD_OF_STAYS)]
)
_STEP = np.array([0] * len(_TOLD) + [_STAY.itemsize // 8] * len(_TOLD_OF_STAYS))


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
