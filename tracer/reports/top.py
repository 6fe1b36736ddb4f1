"""The live view as a pure function: a state and a size in, lines out. Readable at 80×24 and without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracer.escape import printable
from tracer.reports.layout import Style, table, wrap
from tracer.reports.sections import Section, devices, interrupts, losers, worst_waits
from tracer.reports.state import TopState
from tracer.reports.topcpus import cpu_columns, cpu_rows
from tracer.reports.toplines import footer, header, legend, status, verdict
from tracer.units import clip

__all__ = ["render", "snapshot"]

_SMALL = 16  # a screen of fewer lines has room for the CPUs only
_NARROW = 60  # where who took time finds no room beside whose it was
_FOOTER = 8  # of so many lines one is kept for what it cost and lost, which the tables must not push out


@dataclass(frozen=True)
class _Block:
    """Title lines and rows, at ``least`` so many of them, and how fast they grow with the height.

    ``total`` is how many rows there are in all, ``hidden`` what to call those that don't fit.
    """

    head: Sequence[str]
    rows: Sequence[str]
    least: int
    growth: int
    total: int = 0
    hidden: str = ""


def render(state: TopState, width: int = 80, height: int = 24, color: bool = False) -> list[str]:
    """Return exactly ``height`` lines of at most ``width`` cells."""
    style, small = Style(color), height < _SMALL
    top = [style(header(state, width), "reverse"), *verdict(state, width, style, 4, brief=small)]
    notes = [footer(state), *([printable(f" {state.message}")] if state.message else [])]
    space = max(0, height - len(top) - len(notes) - 1)
    body = _body(state, width, height, space, style)
    bottom = _in_lines(notes, width, max(len(notes) + max(0, space - len(body)), height // _FOOTER))
    space = max(0, height - len(top) - len(bottom) - 1)
    lines = [*top, *(body + [""] * space)[:space], *bottom, style(status(state, width), "reverse")]
    return lines[: max(0, height)]


def _in_lines(notes: Sequence[str], width: int, most: int) -> list[str]:
    """Wrap ``notes`` into ``most`` lines; where those don't suffice, each is cut, the first one last."""
    lines: list[str] = []
    for number, note in enumerate(notes):
        wrapped = wrap(note, max(width, 1), "", " ")
        room = max(1, most - len(lines) - (len(notes) - number - 1))
        rest = " ".join(part.strip() for part in wrapped[room - 1 :])
        lines += wrapped if len(wrapped) <= room else [*wrapped[: room - 1], clip(f" {rest}", width)]
    return lines


def snapshot(state: TopState, width: int = 80, height: int = 24) -> list[str]:
    """Return the same for a printout: nothing is cut that can be wrapped, no keys; about ``height`` lines."""
    style = Style()
    top = [header(state, width).rstrip(), *verdict(state, width, style, height)]
    message = wrap(f" {state.message}", width, "", " ") if state.message else []
    bottom = [*wrap(footer(state), width, "", " "), *message, *wrap(legend(state), width, " ", " ")]
    return [*top, *_body(state, width, height, height - len(top) - len(bottom), style), *bottom]


def _body(state: TopState, width: int, height: int, space: int, style: Style) -> list[str]:
    blocks = _blocks(state, width, height, style)[: 1 if height < _SMALL else None]
    blocks = [block for block in blocks if block.head]
    rows = _share(blocks, space - sum(len(block.head) for block in blocks))
    return [line for block, number in zip(blocks, rows, strict=True) for line in _cut(block, number, width)]


def _blocks(state: TopState, width: int, height: int, style: Style) -> list[_Block]:
    """CPUs, the ledger and worst waits of the last ten intervals, devices and lines of the last one."""
    return [
        _cpus(state, width, height, style),
        _losers(state, width, style),
        _block(worst_waits(state.recent, state.source), "task", "who waited", width, style),
        _block(devices(state.last, state.source), "device", "device", width, style),
        replace(_block(interrupts(state.last, state.source), "line", "interrupt line", width, style), least=1),
    ]


def _cpus(state: TopState, width: int, height: int, style: Style) -> _Block:
    everything = cpu_rows(state, width)
    # Formatting is the dearer part: no terminal shows more rows than it has lines.
    found = everything[:height]
    if not found:
        return _Block([style("CPUs: nothing recorded yet", "dim")], [], 0, 1)
    lines = table(cpu_columns(width), [row.cells for row in found], width, style, indent=" ", gap=" ")
    head, lines = lines[:2], lines[2:]
    marked = ["!" + line[1:] if row.alarming else line for row, line in zip(found, lines, strict=True)]
    colored = [style(line, "yellow") if row.alarming else line for row, line in zip(found, marked, strict=True)]
    return _Block(head, colored, 4, 4, len(everything), "CPUs not shown")


def _losers(state: TopState, width: int, style: Style) -> _Block:
    section = losers(state.recent, state.source)
    if section is None or width >= _NARROW:
        return _block(section, "process", "whose time was taken", width, style)
    lines = [clip(printable(line), width) for one, lost, to in section.rows for line in (f" {lost} {one}", f"   {to}")]
    return _Block([style(clip(" whose time was taken, to whom in %", width), "dim")], lines, 2, 1)


def _block(section: Section | None, column: str, title: str, width: int, style: Style) -> _Block:
    """A section whose ``column`` says in its ``title`` what it is about: a line for the section's own is too dear."""
    if section is None:
        return _Block([], [], 0, 1)
    columns = [replace(one, title=title) if one.title == column else one for one in section.columns]
    lines = table(columns, section.rows, width, style, indent=" ", gap="  ")
    return _Block(lines[:1], lines[1:], 2, 2 if column == "task" else 1)


def _share(blocks: Sequence[_Block], space: int) -> list[int]:
    """Share ``space`` rows out: each block its least, then by growth, never more than it has."""
    rows = [min(block.least, len(block.rows)) for block in blocks]
    while sum(rows) > max(0, space):
        rows[max(range(len(rows)), key=lambda place: rows[place])] -= 1
    while sum(rows) < space:
        wanting = [place for place, block in enumerate(blocks) if rows[place] < len(block.rows)]
        if not wanting:
            break
        rows[min(wanting, key=lambda place: rows[place] / blocks[place].growth)] += 1
    return rows


def _cut(block: _Block, number: int, width: int) -> list[str]:
    """Return the block with ``number`` rows, the last of which says how many are hidden."""
    hidden = block.total - number
    if not (block.hidden and hidden and number):
        return [*block.head, *block.rows[:number]]
    return [*block.head, *block.rows[: number - 1], clip(f" {hidden + 1} {block.hidden}", width)]
