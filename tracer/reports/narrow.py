"""Tables on terminals that are too narrow for them: a row's cells one after the other, each with its column's title."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tracer.escape import printable
from tracer.reports.layout import Column, Style, table, wrap
from tracer.units import MISSING, display_width

__all__ = ["LEAST_WIDTH", "ROOMY", "lines_of", "rows_of"]

#: Lines of reports are no shorter, however narrow the terminal.
LEAST_WIDTH = 40
#: From here on a table leaves columns out and cuts cells; with less room nothing of it would be left.
ROOMY = 80
_INDENT, _FURTHER = "  ", "    "


def lines_of(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, style: Style) -> list[str]:
    """Return a table as lines of at most ``width`` cells."""
    heads, told = rows_of(columns, rows, width, style)
    return [*heads, *chain(*told)]


def rows_of(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, style: Style
) -> tuple[list[str], list[list[str]]]:
    """Return the lines with a table's titles, and those of each row; all of at most ``width`` cells."""
    if not columns:
        return [], []
    if width >= ROOMY or _natural(columns, rows) <= width:
        lines = table(columns, rows, width, style)
        heads = len(lines) - len(rows)
        return lines[:heads], [[line] for line in lines[heads:]]
    return [], [_told(columns, row, width) for row in rows]


def _natural(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Return how wide a table is of which nothing is left out."""
    widths = (
        max([column.width, display_width(column.title), *(display_width(printable(row[place])) for row in rows)])
        for place, column in enumerate(columns)
    )
    return sum(len(_INDENT) + width for width in widths)


def _told(columns: Sequence[Column], row: Sequence[str], width: int) -> list[str]:
    """Return a row as ``CPU 1: waits 35 748 · p50 3.5 µs · …``: what has a number for a name is told with its title.

    What was not measured is left out.
    """
    first, *rest = zip(columns, map(printable, row), strict=True)
    parts, group = [], ""
    for column, cell in rest:
        if cell not in ("", MISSING):
            parts.append(f"{_named(column, group)} {cell}")
            group = column.group
    head = f"{first[0].title} {first[1]}" if first[0].right else first[1]
    units = [f"{head}:" if parts else head] if head else []
    units += [f"{part} ·" for part in parts[:-1]] + parts[-1:]
    lines, line = [], _INDENT
    for unit in units:
        longer = f"{line} {unit}" if line.strip() else line + unit
        if display_width(longer) <= width:
            line = longer
            continue
        lines += [line] if line.strip() else []
        *whole, line = wrap(unit, width, _FURTHER if lines else _INDENT, _FURTHER)
        lines += whole
    return [*lines, line]


def _named(column: Column, group: str) -> str:
    """Return a column's title, behind its group's where that is another one than the column's before it."""
    return f"{column.group}: {column.title}" if column.group not in ("", group) else column.title
