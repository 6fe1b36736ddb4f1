"""What a section is, and what several of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracer.analysis.frames import Frame
from tracer.analysis.source import Source
from tracer.analysis.statistics import Statistics
from tracer.escape import printable
from tracer.reports.layout import Column, Style, wrap
from tracer.reports.narrow import lines_of
from tracer.units import at_most, duration, many, moment

__all__ = [
    "PROSE_WIDTH",
    "QUANTILES",
    "ROWS",
    "Section",
    "as_lines",
    "known",
    "more",
    "of_filter",
    "quantiles",
    "when",
]

PROSE_WIDTH = 110  # longer lines of prose are hard to read however wide the terminal is
ROWS = 8  # the worst of a kind; the rest is counted, and in the JSON
#: Where not all fit, p90 goes first, then p99.9, then p50.
QUANTILES = (Column("p50", rank=1), Column("p90", rank=3), Column("p99"), Column("p99.9", rank=2), Column("max"))


@dataclass(frozen=True)
class Section:
    """A titled table; ``more`` says what was left out, ``stacks`` are frames to be shown below each row.

    ``notes`` are sentences below the table, or alone where there are no columns.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    more: str = ""
    stacks: Sequence[Sequence[Frame]] = ()
    notes: Sequence[str] = ()


def as_lines(section: Section | None, width: int, style: Style) -> list[str]:
    """Return a section without stacks as lines of at most ``width`` cells, after an empty one; none of none."""
    if section is None:
        return []
    lines = ["", *(style(line, "bold") for line in wrap(section.title, width, "", "  "))]
    lines += lines_of(section.columns, section.rows, width, style)
    lines += [style(line, "dim") for line in wrap(section.more, width, "  ", "  ")] if section.more else []
    return lines + [
        line for note in section.notes for line in wrap(printable(note), min(width, PROSE_WIDTH), "  ", "    ")
    ]


def quantiles(one: Statistics) -> list[str]:
    """Return the cells of ``QUANTILES``; a quantile of too few values is as good as not measured."""
    one = one.told
    return [*(duration(ns) for ns in (one.p50_ns, one.p90_ns, one.p99_ns, one.p999_ns)), at_most(one.max_ns)]


def when(event: Mapping[str, Any], source: Source) -> str:
    """Return an event's time of day, in UTC as the column's title says."""
    return moment(source.unix_ns(event.get("time_ns", float("nan"))), date=False).removesuffix(" UTC")


def more(rest: Sequence[object], what: str) -> str:
    """Return the line that counts what is not shown; ``what`` in the singular."""
    return f"{many(len(rest), what)} not shown" if rest else ""


def of_filter(source: Source) -> str:
    """Return what a series by task is limited to, for its title; what counts by CPU is always of all tasks."""
    return "".join(f"  ({what} only)" for what in source.tasks_traced)


def known(ns: float) -> float:
    """Return ``ns`` for sorting: unknown is least."""
    return ns if ns == ns else -1.0
