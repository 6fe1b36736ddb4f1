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
    """A table's column, ``width`` cells at least. ``flexible`` ones give way in a narrow table, down to ``least``."""

    title: str
    right: bool = True
    flexible: bool = False
    least: int = 8
    width: int = 0


def wrap(text: str, width: int, first: str = "", indent: str = "") -> list[str]:
    """Break ``text`` (made printable here) into lines of ``width`` cells; words too long for a line are cut apart."""
    lines: list[str] = []
    line, empty = first, True
    for word in _GLUE.sub(_NO_BREAK, printable(text)).split(" "):
        while word and display_width(line) + (not empty) + display_width(word) > width:
            part, word = ("", word) if not empty else _split(word, width - display_width(line))
            lines.append(line + part)
            line, empty = indent, True
        line += word if empty else f" {word}"
        empty = False
    return [part.replace(_NO_BREAK, " ") for part in (*lines, line)]


def _split(word: str, room: int) -> tuple[str, str]:
    """Return as much of ``word`` as fits, at least one character, and the rest."""
    length = 1
    while length < len(word) and display_width(word[: length + 1]) <= room:
        length += 1
    return word[:length], word[length:]


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    width: int,
    style: Style,
    *,
    indent: str = "  ",
    gap: str = "  ",
) -> list[str]:
    """Return aligned lines of at most ``width`` cells, titles first. Cells are made printable here."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [
        max([column.width, display_width(column.title), *(display_width(row[place]) for row in cells)])
        for place, column in enumerate(columns)
    ]
    _squeeze(widths, columns, len(indent) + sum(widths) + len(gap) * (len(columns) - 1) - width)
    lines = []
    for row in ([column.title for column in columns], *cells):
        parts = (
            pad(clip(cell, width), width, right=c.right) for cell, c, width in zip(row, columns, widths, strict=True)
        )
        lines.append(clip((indent + gap.join(parts)).rstrip(), width))
    return [style(lines[0], "dim"), *lines[1:]]


def _squeeze(widths: list[int], columns: Sequence[Column], over: int) -> None:
    """Take ``over`` cells from the flexible columns, from the widest first."""
    for _ in range(max(0, over)):
        room = [place for place, column in enumerate(columns) if column.flexible and widths[place] > column.least]
        if not room:
            return
        widths[max(room, key=lambda place: widths[place])] -= 1


def bar(share: float, cells: int) -> str:
    """Return a bar of ``cells`` characters: full for the ``share``, light for the rest."""
    full = 0 if share != share else round(max(0.0, min(1.0, share)) * cells)
    return "█" * full + "░" * (cells - full)


def plain_ascii(text: str) -> str:
    """Replace our own signs by ASCII ones, for terminals that can show nothing else."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()
