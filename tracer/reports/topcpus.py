"""The live view's CPU table: the last interval beside the worst of the last ten."""

from __future__ import annotations

from collections.abc import Sequence
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

__all__ = ["WIDE", "CpuRow", "cpu_columns", "cpu_rows"]

WIDE = 80  # cells that all columns need
_NAN = float("nan")
_SHARES = (Column("CPU", width=3), Column("busy", width=5), Column("intr", width=5))
_GROUPS = (
    ("run-queue wait", ("p50", "p99", "max", f"max{RECENT}")),
    ("softirq late", ("p99", "max", f"max{RECENT}")),
    ("hardirq run", ("p99", f"max{RECENT}")),
)


def cpu_columns(width: int) -> list[Column]:
    """Return the columns that ``width`` cells have room for; times are upper edges of buckets."""
    if width < WIDE:
        group = f"worst of {RECENT} intervals"
        return [*_SHARES, *(Column(title, width=7, group=group) for title in ("wait", "softirq", "hardirq"))]
    return [*_SHARES, *(Column(title, width=6, group=group) for group, titles in _GROUPS for title in titles)]


@dataclass(frozen=True)
class CpuRow:
    """One CPU's cells; ``alarming`` when a rule's threshold is passed in the last ten intervals."""

    cells: list[str]
    alarming: bool
    order: tuple[float, ...]


def cpu_rows(state: TopState, width: int) -> list[CpuRow]:
    """Return every CPU that was seen, in the order of ``state.sort``, with the cells of ``cpu_columns(width)``."""
    waits, late, lines = (
        [_by_cpu(summary, *series) for summary in (state.last, state.recent)]
        for series in (("runqueue", "wait"), ("softirq", "delay", URGENT), ("hardirq", "run"))
    )
    times = cpu_times(state.last)
    rows = []
    for cpu in sorted({*waits[1], *late[1], *lines[1], *times}):
        series = [(now.get(cpu, NOTHING), before.get(cpu, NOTHING)) for now, before in (waits, late, lines)]
        rows.append(_row(cpu, times.get(cpu), series, state.sort, width))
    return sorted(rows, key=lambda row: row.order)


def _row(
    cpu: int, time: CpuTime | None, series: Sequence[tuple[Statistics, Statistics]], sort: str, width: int
) -> CpuRow:
    """``series`` are waits, late softirqs and interrupts, each of the last interval and of the last ten."""
    series = [(now.told, before.told) for now, before in series]
    (wait, waits), (late, lates), (line, lines) = series
    shares = [_narrow(share) for share in ((time.busy, time.interrupts) if time else (_NAN, _NAN))]
    if width < WIDE:
        times = [waits.max_ns, lates.max_ns, lines.max_ns]
    else:
        times = [wait.p50_ns, wait.p99_ns, wait.max_ns, waits.max_ns]
        times += [late.p99_ns, late.max_ns, lates.max_ns, line.p99_ns, lines.max_ns]
    alarming = (
        waits.max_ns > thresholds.RUNQUEUE_WORST_NS
        or lates.max_ns > thresholds.SOFTIRQ_DELAY_WORST_NS
        or lines.max_ns > thresholds.HARDIRQ_WORST_NS
        or bool(time and time.interrupts > thresholds.CPU_INTERRUPTS)
    )
    keys: dict[str, tuple[float, ...]] = {
        "wait": (-_known(waits.max_ns), -_known(wait.p99_ns)),
        "softirq": (-_known(lates.max_ns), -_known(late.p99_ns)),
        "busy": (-(time.busy if time else 0.0),),
        "cpu": (),
    }
    cells = [str(cpu), *shares, *(duration(ns).replace(" ", "") for ns in times)]
    return CpuRow(cells, alarming, (*keys[sort], cpu))


def _narrow(share: float) -> str:
    return "<0.1%" if 0 < share < 0.001 else percent(share).replace(" ", "")


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
