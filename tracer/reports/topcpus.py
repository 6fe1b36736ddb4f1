"""The live view's CPU table: the last interval beside the worst of the last ten."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer.analysis import thresholds
from tracer.analysis.cpus import CpuTime, cpu_times
from tracer.analysis.rules.softirq import URGENT
from tracer.analysis.statistics import NOTHING, Statistics
from tracer.analysis.summary import Summary
from tracer.histogram import SLOTS
from tracer.reports.layout import Column
from tracer.reports.state import RECENT, TopState
from tracer.units import duration, percent

__all__ = ["CPU_COLUMNS", "CPU_GROUPS", "CpuRow", "cpu_rows"]

_WIDTH = 7
_NAN = float("nan")
_TITLES = ("p50", "p99", "max", str(RECENT), "p99", "max", str(RECENT), "max")
CPU_COLUMNS = [
    Column("CPU", width=3),
    Column("busy", width=5),
    Column("intr", width=5),
    *(Column(title, width=_WIDTH) for title in _TITLES),
]
CPU_GROUPS = (
    " " * 17 + f"{'run-queue wait, at most':^31}" + " " + f"{'softirq late, at most':^23}" + " " + f"{'hardirq':>7}"
)


@dataclass(frozen=True)
class CpuRow:
    """One CPU's cells; ``alarming`` when a rule's threshold is passed in the last ten intervals."""

    cells: list[str]
    alarming: bool
    order: tuple[float, ...]


def cpu_rows(state: TopState) -> list[CpuRow]:
    """Return every CPU that was seen, in the order of ``state.sort``."""
    waits, waits_before = _by_cpu(state.last, "runqueue", "wait"), _by_cpu(state.recent, "runqueue", "wait")
    late, late_before = (_by_cpu(one, "softirq", "delay", URGENT) for one in (state.last, state.recent))
    lines, times = _by_cpu(state.last, "hardirq", "run"), cpu_times(state.last)
    cpus = sorted({*waits_before, *late_before, *lines, *times})
    rows = [
        _row(
            cpu,
            times.get(cpu),
            (waits.get(cpu, NOTHING), waits_before.get(cpu, NOTHING)),
            (late.get(cpu, NOTHING), late_before.get(cpu, NOTHING)),
            lines.get(cpu, NOTHING),
            state.sort,
        )
        for cpu in cpus
    ]
    return sorted(rows, key=lambda row: row.order)


def _row(
    cpu: int,
    time: CpuTime | None,
    wait: tuple[Statistics, Statistics],
    late: tuple[Statistics, Statistics],
    line: Statistics,
    sort: str,
) -> CpuRow:
    cells = [
        str(cpu),
        *(_narrow(share) for share in ((time.busy, time.interrupts) if time else (_NAN, _NAN))),
        *(duration(ns) for ns in (wait[0].p50_ns, wait[0].p99_ns, wait[0].max_ns, wait[1].max_ns)),
        *(duration(ns) for ns in (late[0].p99_ns, late[0].max_ns, late[1].max_ns)),
        duration(line.max_ns),
    ]
    alarming = (
        wait[1].max_ns > thresholds.RUNQUEUE_WORST_NS
        or late[1].max_ns > thresholds.SOFTIRQ_DELAY_WORST_NS
        or line.max_ns > thresholds.HARDIRQ_WORST_NS
        or bool(time and time.interrupts > thresholds.CPU_INTERRUPTS)
    )
    keys: dict[str, tuple[float, ...]] = {
        "wait": (-_known(wait[1].max_ns), -_known(wait[0].p99_ns)),
        "softirq": (-_known(late[1].max_ns), -_known(late[0].p99_ns)),
        "busy": (-(time.busy if time else 0.0),),
        "cpu": (),
    }
    return CpuRow(cells, alarming, (*keys[sort], cpu))


def _narrow(share: float) -> str:
    return percent(share).replace(" ", "")


def _by_cpu(summary: Summary, probe: str, name: str, vectors: tuple[int, ...] = ()) -> dict[int, Statistics]:
    table = summary.table(probe, name)
    if table is None:
        return {}
    if not vectors:
        return {int(cpu): group.statistics for (cpu,), group in table.groups("cpu").items()}
    slots: dict[int, np.ndarray] = {}
    for (cpu, vector), group in table.groups("cpu", "vector").items():
        if vector in vectors:
            slots[int(cpu)] = slots.get(int(cpu), np.zeros(SLOTS, np.uint64)) + group.slots
    return {cpu: Statistics.from_slots(counted, 0) for cpu, counted in slots.items()}


def _known(ns: float) -> float:
    return ns if ns == ns else -1.0
