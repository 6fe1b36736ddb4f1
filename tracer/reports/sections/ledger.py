"""The stolen-time ledger: what each process did, lost and to whom."""

from __future__ import annotations

from tracer.analysis.ledger import accounts, sentence, subject, takers
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, more, of_filter
from tracer.units import duration, percent

__all__ = ["ledger", "losers"]

_COLUMNS = (
    Column("process", right=False, flexible=True, least=24),
    Column("lost"),
    Column("ran", rank=1),
    Column("waited"),
    Column("quota"),
    Column("interrupted", rank=2),
    Column("memory", rank=3),
    Column("disk", rank=4),
    Column("locks", rank=5),
)
_CELLS = (
    ("running_ns",),
    ("waiting_ns",),
    ("throttled_ns",),
    ("softirq_ns", "hardirq_ns"),
    ("reclaim_ns", "compaction_ns"),
    ("disk_ns",),
    ("mutex_ns", "rwsem_ns", "rtlock_ns"),
)


def ledger(summary: Summary, source: Source) -> Section | None:
    """Those that lost most, in numbers and in words; a job's processes before all others."""
    found = sorted(accounts(summary, source), key=lambda one: source.jobs.of(one.pid) is None)
    if not found:
        return None
    rows = [
        [
            subject(one, source),
            percent(one.lost),
            *(duration(sum(one.times[name] for name in names)) for names in _CELLS),
        ]
        for one in found[:ROWS]
    ]
    notes = [said for one in found[:ROWS] if (said := sentence(one, source))]
    times = summary.table("ledger", "time")
    if times and not {"hot_ns", "slow_ns"} & times.columns:
        notes.append("Lowered frequency: not seen on this machine, which shows neither throttling nor frequencies.")
    title = f"LEDGER  whose time was taken, and by whom{of_filter(source)}"
    return Section(title, _COLUMNS, rows, more(found[ROWS:], "smaller account"), notes=notes)


def losers(summary: Summary, source: Source) -> Section | None:
    """Who took whose time, a line each: of a job's processes where some lost any; None where nobody did."""
    found = [(one, taken) for one in accounts(summary, source) if (taken := takers(one))]
    of_jobs = [(one, taken) for one, taken in found if source.jobs.of(one.pid)]
    rows = [[subject(one, source), percent(one.lost), taken] for one, taken in of_jobs or found]
    columns = (
        Column("process", right=False, flexible=True, least=24),
        Column("lost"),
        Column("to whom, in %", right=False, flexible=True, least=20),
    )
    return Section("LEDGER", columns, rows[:ROWS]) if rows else None
