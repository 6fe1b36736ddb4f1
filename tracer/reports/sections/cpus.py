"""CPUs: where their time went, where it stood still, and series that have no section of their own."""

from __future__ import annotations

from tracer.analysis.cpus import cpu_times
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.probes import all_probes
from tracer.reports.layout import Column
from tracer.reports.sections._section import QUANTILES, ROWS, Section, more, quantiles, when
from tracer.units import count, duration, percent

__all__ = ["cpu_time", "others", "stalls"]

_SHOWN = frozenset(
    {
        *(("runqueue", "wait"), ("runqueue_cgroup", "wait"), ("softirq", "delay"), ("softirq", "run")),
        *(("hardirq", "run"), ("napi", "poll")),
    }
)


def cpu_time(summary: Summary, source: Source) -> Section | None:
    """Where CPU time went, the busiest first."""
    cpus = sorted(cpu_times(summary).values(), key=lambda one: (-one.busy, one.cpu))
    if not cpus:
        return None
    rows = [
        [str(one.cpu), *(percent(part) for part in (one.busy, one.running, one.softirq, one.hardirq, one.idle))]
        for one in cpus
    ]
    columns = [Column("CPU"), Column("busy"), Column("tasks"), Column("softirq"), Column("hardirq"), Column("idle")]
    title = "CPU TIME" + ("  of all tasks: it can't be limited" if source.task_filters else "")
    return Section(title, columns, rows[:ROWS], more(rows[ROWS:], "less busy CPU"))


def stalls(summary: Summary, source: Source) -> Section | None:
    """CPUs that made no progress."""
    worst = summary.events("cpustall", "stalls")
    if worst is None or not worst.events:
        return None
    rows = [
        [
            *(when(event, source), duration(event["duration_ns"]), str(event["cpu"])),
            source.task(str(event.get("comm", "")), int(event.get("pid", 0))),
        ]
        for event in worst.events[:ROWS]
    ]
    columns = [Column("UTC", right=False), Column("lasted"), Column("CPU"), Column("task", right=False, flexible=True)]
    return Section("STALLS  CPUs without progress", columns, rows, more(worst.events[ROWS:], "shorter one"))


def others(summary: Summary, source: Source) -> Section | None:
    """Histograms that have no section of their own, also of probes newer than this code."""
    rows, notes = [], []
    for (probe, name), merged in sorted(summary.histograms().items()):
        one = merged.total().statistics
        if (probe, name) not in _SHOWN and one.count:
            rows.append([f"{probe}.{name}", count(one.count), *quantiles(one)])
            notes += _meaning(probe, name)
    columns = [Column("series", right=False, flexible=True), Column("count"), *QUANTILES]
    return Section("OTHER SERIES  all CPUs together", columns, rows, notes=notes) if rows else None


def _meaning(probe: str, name: str) -> list[str]:
    """Return what a series is, as its probe declares it; nothing for one that is newer than this code."""
    tables = all_probes()[probe].tables if probe in all_probes() else ()
    return [f"{probe}.{name}: {table.help}" for table in tables if table.name == name]
