"""Whose node it was: jobs, pods and containers with their ranks and processes."""

from __future__ import annotations

from tracer.analysis.jobs import Member, ranges, ranks
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, more
from tracer.units import count, moment

__all__ = ["jobs"]


def jobs(summary: Summary, source: Source) -> Section | None:
    """What the processes that used the CPUs belong to, as far as cgroups and environments say."""
    rows = []
    for party, members in source.jobs.parties().items():
        having = ranks(members)
        of = f" of {party.world_size}" if having and party.world_size > 0 else ""
        rows.append(
            [
                party.title or "job not known",
                party.step,
                f"{ranges(having)}{of}",
                count(len(members)),
                f"{members[0].comm}[{members[0].pid}]",
                _since(members, summary, source),
            ]
        )
    columns = [
        Column("job, pod or container", right=False, flexible=True, least=20),
        *(Column("step", right=False, rank=2), Column("ranks", right=False, flexible=True, least=6)),
        *(Column("processes", rank=1), Column("first", right=False, flexible=True), Column("UTC", right=False, rank=3)),
    ]
    return Section("WHOSE NODE IT WAS", columns, rows[:ROWS], more(rows[ROWS:], "other")) if rows else None


def _since(members: list[Member], summary: Summary, source: Source) -> str:
    """Return from when to when they were there, where that is not the whole run."""
    seen = summary.intervals
    began, ended = min(one.began_ns for one in members), max(one.seen_ns for one in members)
    parts = [f"from {_moment(source, began)}"] if began > seen.start_ns else []
    parts += [f"to {_moment(source, ended)}"] if all(one.ended for one in members) else []
    return " ".join(parts)


def _moment(source: Source, monotonic_ns: int) -> str:
    return moment(source.unix_ns(monotonic_ns), date=False).removesuffix(" UTC")
