"""Functions by the time spent in them, and by how much that changed against a baseline."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.analysis.stacks import Frame
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, change, more
from tracer.reports.sections.stacks import called
from tracer.units import duration, percent

__all__ = ["Functions", "changed_functions", "functions"]

#: Each function's ns: its own, and with callees.
Functions = Mapping[Frame, tuple[float, float]]

_NOTHING = (0.0, 0.0)
_NAME = Column("function", right=False, flexible=True, least=16)
_MODULE = Column("module", right=False, flexible=True, least=8, rank=2)


def functions(title: str, found: Functions) -> Section | None:
    """Return the functions with the most time of their own."""
    ranked = sorted(found.items(), key=lambda one: (-one[1][0], -one[1][1], one[0]))
    all_ns = sum(own for own, _ in found.values())
    rows = [
        [called(frame), frame.module, duration(own), percent(own / all_ns), percent(total / all_ns)]
        for frame, (own, total) in ranked[:ROWS]
    ]
    columns = [_NAME, _MODULE, Column("itself"), Column("share"), Column("with callees", rank=1)]
    rest = more(ranked[ROWS:], "other function")
    return Section(f"FUNCTIONS  {title}, by their own time", columns, rows, rest) if rows else None


def changed_functions(
    title: str, before: Functions, now: Functions, before_seconds: float, seconds: float
) -> Section | None:
    """Return the functions whose own time per second changed most, those that vanished too."""
    rated = {
        frame: (before.get(frame, _NOTHING)[0] / before_seconds, now.get(frame, _NOTHING)[0] / seconds)
        for frame in {**before, **now}
        if before.get(frame, _NOTHING)[0] or now.get(frame, _NOTHING)[0]
    }
    ranked = sorted(rated.items(), key=lambda one: (-abs(one[1][1] - one[1][0]), one[0]))
    rows = [
        [called(frame), frame.module, *(f"{duration(ns)}/s" for ns in (young, old)), change(old, young)]
        for frame, (old, young) in ranked[:ROWS]
    ]
    columns = [_NAME, _MODULE, Column("itself"), Column("baseline"), Column("change")]
    rest = more(ranked[ROWS:], "other function")
    return Section(f"FUNCTIONS  {title}, those whose own time changed most", columns, rows, rest) if rows else None
