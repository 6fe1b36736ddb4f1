"""What a comparison of nodes says, for the page of the one that deviates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracer.compare.comparison import Comparison
from tracer.compare.metrics import METRICS
from tracer.compare.suspect import Detail, Suspect
from tracer.compare.verdict import headline
from tracer.reports.sections._section import Section
from tracer.reports.sections.comparison import differing, suspects, victims

__all__ = ["comparison_data"]


def comparison_data(comparison: Comparison, details: Mapping[str, Detail], one: Suspect) -> dict[str, Any]:
    """Return the ``headline``, as ``tables`` who deviates by how much and in what it is set up
    differently, and what shows it of ``one``.

    That is the ``series`` as the page calls it, and ``since_unix_ms``; NaN where it was so from the start.
    """
    series = one.deviations[0].series
    sections = (suspects(comparison, details), victims(comparison), differing(comparison))
    return {
        "headline": headline(comparison, details),
        "series": f"{'.'.join(METRICS[series.metric].table)} {series.part}".rstrip(),
        "since_unix_ms": float("nan") if one.lasting else one.since_ns / 1e6,
        "tables": [_table(section) for section in sections if section],
    }


def _table(section: Section) -> dict[str, Any]:
    what, _, rest = section.title.partition("  ")
    return {
        "title": f"{what.capitalize()}: {rest}",
        "heads": [column.title for column in section.columns],
        "numbers": [place for place, column in enumerate(section.columns) if column.right],
        "rows": section.rows,
        "notes": [*section.notes, *filter(None, [section.more])],
    }
