"""Lines for a terminal: styles, wrapped sentences, aligned tables. Works in 80 columns and without colour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracer.reports.escape import printable
from tracer.units import clip, display_width, pad

__all__ = ["Column", "Style", "bar", "plain_ascii", "table", "wrap"]

_CODES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "green": "32", "reverse": "7"}
# A number stays with its unit and a ≤ with its number.
_GLUE = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|min|h|[kMGT]?B/s|[kMG]/s|[KMG]iB|[kMG]b/s)(?![\w]))|(?<=[≤>]) (?=\d)")
_NO_BREAK = "\x00"
_GAP = "  "
_ASCII = str.maketrans(
    {"≤": "<=", "µ": "u", "–": "-", "…": "~", "·": "|", "█": "#", "░": ".", "\u202f": ",", "→": ">", "←": "<"}
)


@dataclass(frozen=True)
class Style:
    """Adds colour, or nothing. Every meaning is also in words or signs."""

    color: bool = False

    def __call__(self, text: str, *names: str) -> str:
        """Return ``text`` in the named styles."""
        if not (self.color and text and names):
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"


@dataclass(frozen=True)
class Column:
    """A table's column. ``flexible`` ones give way when the table is too wide, down to ``least`` cells."""

    title: str
    right: bool = True
    flexible: bool = False
    least: int = 8


def wrap(text: str, width: int, first: str = "", indent: str = "") -> list[str]:
    """Break ``text`` (made printable here) into lines of ``width`` cells; words too long for a line are cut apart."""
    lines: list[str] = []
    line, empty = first, True
    for word in _GLUE.sub(_NO_BREAK, printable(text)).split(" "):
        while display_width(line) + (not empty) + display_width(word) > width:
            if not empty:
                lines.append(line)
                line, empty = indent, True
                continue
            room = max(1, width - display_width(line))
            lines.append(line + word[:room])
            line, word = indent, word[room:]
        line += word if empty else f" {word}"
        empty = False
    return [part.replace(_NO_BREAK, " ") for part in (*lines, line)]


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, style: Style, indent: str = "  "
) -> list[str]:
    """Return aligned lines, title first. Cells are made printable here."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [
        max([display_width(column.title), *(display_width(row[place]) for row in cells)])
        for place, column in enumerate(columns)
    ]
    over = len(indent) + sum(widths) + len(_GAP) * (len(columns) - 1) - width
    for place, column in enumerate(columns):
        if column.flexible and over > 0:
            cut = max(0, min(over, widths[place] - column.least))
            widths[place] -= cut
            over -= cut
    head = _line([column.title for column in columns], columns, widths, indent)
    return [style(head, "dim"), *(_line(row, columns, widths, indent) for row in cells)]


def bar(share: float, cells: int) -> str:
    """Return a bar of ``cells`` characters: full for the ``share``, light for the rest."""
    full = 0 if share != share else round(max(0.0, min(1.0, share)) * cells)
    return "█" * full + "░" * (cells - full)


def plain_ascii(text: str) -> str:
    """Replace our own signs by ASCII ones, for terminals that can show nothing else."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], indent: str) -> str:
    parts = [
        pad(clip(cell, width), width, right=column.right)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    return (indent + _GAP.join(parts)).rstrip()
