"""Lines for a terminal: styles, wrapped sentences, aligned tables. Works in 80 columns and without colour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tracer.escape import printable
from tracer.units import clip, display_width, pad

__all__ = ["Column", "Style", "plain_ascii", "table", "wrap"]

_CODES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "green": "32", "reverse": "7"}
# A number stays with its unit and a ≤ with its number.
_GLUE = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|min|h|[kMGT]?B/s|[kMG]/s|[KMG]iB|[kMG]b/s)(?![\w]))|(?<=[≤>]) (?=\d)")
_NO_BREAK = "\x00"
_ASCII = str.maketrans(
    {
        "≤": "<=",
        "≥": ">=",
        "µ": "u",
        "–": "-",
        "−": "-",
        "×": "x",
        "÷": "/",
        "±": "+-",
        "…": "~",
        "·": "|",
        "→": ">",
        "←": "<",
    }
    | {"\u202f": ","}
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
    """A table's column, ``width`` cells at least. ``flexible`` ones give way in a narrow table, down to ``least``, and
    lose the end of long cells, or their beginning where the ``tail`` tells more.

    Where that is not enough, columns are left out, those of the highest ``rank`` first; 0 stays. Neighbours of one
    ``group`` share a line above their titles.
    """

    title: str
    right: bool = True
    flexible: bool = False
    least: int = 8
    width: int = 0
    rank: int = 0
    group: str = ""
    tail: bool = False


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
    room = width - len(indent) + len(gap)
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [
        max([column.width, display_width(column.title), *(display_width(row[place]) for row in cells)])
        for place, column in enumerate(columns)
    ]
    kept = _kept(columns, widths, room, len(gap))
    columns, widths = [columns[place] for place in kept], [widths[place] for place in kept]
    _squeeze(widths, columns, sum(widths) + len(gap) * len(widths) - room)
    titles = [[column.title for column in columns], *([row[place] for place in kept] for row in cells)]
    lines = [style(clip((indent + _groups(columns, widths, gap)).rstrip(), width), "dim")] if _grouped(columns) else []
    for number, row in enumerate(titles):
        parts = (pad(_cut(cell, w, c), w, right=c.right) for cell, c, w in zip(row, columns, widths, strict=True))
        line = clip((indent + gap.join(parts)).rstrip(), width)
        lines.append(line if number else style(line, "dim"))
    return lines


def _cut(cell: str, width: int, column: Column) -> str:
    if not column.tail or display_width(cell) <= width:
        return clip(cell, width)
    while display_width(cell) >= width:
        cell = cell[1:]
    return f"…{cell}"


def _kept(columns: Sequence[Column], widths: Sequence[int], room: int, gap: int) -> list[int]:
    """Return the places of the columns that are shown in ``room`` cells."""
    kept = list(range(len(columns)))
    needs = [min(w, max(c.least, c.width)) if c.flexible else w for c, w in zip(columns, widths, strict=True)]
    while sum(needs[place] + gap for place in kept) > room:
        last = max(kept, key=lambda place: (columns[place].rank, place))
        if not columns[last].rank:
            break
        kept.remove(last)
    return kept


def _grouped(columns: Sequence[Column]) -> bool:
    return any(column.group for column in columns)


def _groups(columns: Sequence[Column], widths: Sequence[int], gap: str) -> str:
    """Return the line above the titles: each group's name over the middle of its columns."""
    parts = []
    for group, members in groupby(zip(columns, widths, strict=True), key=lambda member: member[0].group):
        span = len(gap.join(" " * width for _, width in members))
        parts.append(f"{clip(group, span):^{span}}")
    return gap.join(parts)


def _squeeze(widths: list[int], columns: Sequence[Column], over: int) -> None:
    """Take ``over`` cells from the flexible columns, from the widest first."""
    for _ in range(max(0, over)):
        room = [place for place, column in enumerate(columns) if column.flexible and widths[place] > column.least]
        if not room:
            return
        widths[max(room, key=lambda place: widths[place])] -= 1


def plain_ascii(text: str) -> str:
    """Replace our own signs by ASCII ones, for terminals that can show nothing else."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()
