"""Functions by the time spent in them, and by how much that changed against a baseline."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.analysis.frames import Frame
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, more
from tracer.reports.sections.stacks import called
from tracer.units import change, duration, percent

__all__ = ["Functions", "changed_functions", "functions"]

#: Each function's ns: its own, and with callees.
Functions = Mapping[Frame, tuple[float, float]]

_NOTHING = (0.0, 0.0)
_NAME = Column("function", right=False, flexible=True, least=16)
_MODULE = Column("module", right=False, flexible=True, least=8, rank=2)


def functions(title: str, found: Functions, note: str = "") -> Section | None:
    """Return the functions with the most time of their own; ``note`` says what is left out."""
    ranked = sorted(found.items(), key=lambda one: (-one[1][0], -one[1][1], one[0]))
    all_ns = sum(own for own, _ in found.values())
    rows = [
        [called(frame), frame.module, duration(own), percent(own / all_ns), percent(total / all_ns)]
        for frame, (own, total) in ranked[:ROWS]
    ]
    columns = [_NAME, _MODULE, Column("itself"), Column("share"), Column("with callees", rank=1)]
    rest = more(ranked[ROWS:], "other function")
    notes = [note] if note else []
    return Section(f"FUNCTIONS  {title}, by their own time", columns, rows, rest, notes=notes) if rows else None


def changed_functions(
    title: str, before: Functions, now: Functions, seconds: tuple[float, float], sample_ns: float, note: str = ""
) -> Section | None:
    """Return the functions whose own time per second changed most, those that vanished too.

    ``seconds`` were measured before and now; ``sample_ns`` is what a sample stands for, 0 where time was measured. What
    may be chance comes last, in brackets.
    """
    ranked = []
    for frame in {**before, **now}:
        old, young = (
            side.get(frame, _NOTHING)[0] / length for side, length in zip((before, now), seconds, strict=True)
        )
        if old or young:
            ranked.append((_by_chance(old, young, seconds, sample_ns), -abs(young - old), frame, old, young))
    ranked.sort()
    rows = [
        [
            *(called(frame), frame.module),
            *(f"{duration(ns)}/s" for ns in (young, old)),
            f"({change(old, young)})" if chance and old != young else change(old, young),
        ]
        for chance, _, frame, old, young in ranked[:ROWS]
    ]
    columns = [_NAME, _MODULE, Column("itself"), Column("baseline"), Column("change")]
    rest = more(ranked[ROWS:], "other function")
    notes = ["In brackets what may be chance: too few samples."] if any(row[-1].startswith("(") for row in rows) else []
    notes += [note] if note else []
    title = f"FUNCTIONS  {title}, those whose own time changed most"
    return Section(title, columns, rows, rest, notes=notes) if rows else None


def _by_chance(before: float, now: float, seconds: tuple[float, float], sample_ns: float) -> bool:
    """Return whether two rates of so few samples differ by less than twice their standard error (Poisson's)."""
    usual = (before * seconds[0] + now * seconds[1]) / sum(seconds)
    return (now - before) ** 2 <= 4 * usual * sample_ns * sum(1 / length for length in seconds)
