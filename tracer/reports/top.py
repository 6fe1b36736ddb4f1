"""The live view as a pure function: a state and a size in, lines out. Readable at 80×24 and without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracer.analysis.cost import own_cost
from tracer.analysis.finding import Severity
from tracer.analysis.summary import Summary
from tracer.reports.escape import printable
from tracer.reports.layout import Column, Style, table, wrap
from tracer.reports.sections import Section, devices, interrupts, worst_waits
from tracer.reports.state import RECENT, TopState
from tracer.reports.topcpus import CPU_COLUMNS, CPU_GROUPS, cpu_rows
from tracer.units import clip, count, display_width, duration, memory, moment, percent

__all__ = ["KEYS", "render"]

KEYS = "q quit  space pause  ←/→ step  s sort"
_VERDICT_LINES = 4
# Rows of CPUs, worst waits, devices and interrupt lines: those at least, and how fast each grows with the height.
_LEAST = (4, 2, 2, 1)
_GROWTH = (4, 2, 1, 1)


@dataclass(frozen=True)
class _Block:
    """Title lines, rows, how many rows there are in all, and what to call those that don't fit."""

    head: Sequence[str]
    rows: Sequence[str]
    total: int = 0
    hidden: str = ""


def render(state: TopState, width: int = 80, height: int = 24, color: bool = False) -> list[str]:
    """Return exactly ``height`` lines of at most ``width`` cells."""
    style = Style(color)
    top = [style(_header(state, width), "reverse"), *_verdict(state, width, style)]
    message = [clip(printable(f" {state.message}"), width)] if state.message else []
    bottom = [clip(_footer(state), width), *message, style(_status(state, width), "reverse")]
    blocks = [_cpus(state, width, height, style), *_sections(state, width, style)]
    rows = _share(blocks, height - len(top) - len(bottom) - sum(len(block.head) for block in blocks))
    body = [line for block, number in zip(blocks, rows, strict=True) for line in _cut(block, number, width)]
    space = max(0, height - len(top) - len(bottom))
    body = (body + [""] * space)[:space]
    return [*top, *body, *bottom][: max(0, height)]


def _header(state: TopState, width: int) -> str:
    source, seen = state.source, state.last.intervals
    now = moment(source.unix_ns(seen.end_ns)) if seen.count else "waiting for the first interval"
    parts = [f"foreshock top  {source.host or 'unknown host'}", f"Linux {source.kernel}" if source.kernel else ""]
    parts += [now if now != "–" else "time unknown", f"every {duration(seen.typical_ns)}" if seen.count else ""]
    return _fill(printable("  ".join(filter(None, parts))), width)


def _verdict(state: TopState, width: int, style: Style) -> list[str]:
    """The worst finding in full, as far as it fits; how many more there are."""
    findings = state.verdict.findings
    if not findings:
        return [style(clip(state.verdict.headline, width), "bold")]
    worst, more = findings[0], len(findings) - 1
    sign = {Severity.CRITICAL: "!! ", Severity.WARNING: "! ", Severity.NOTE: "- "}[worst.severity]
    lines = wrap(f"{worst.what} {worst.who}", width, sign, "   ")
    if len(lines) > _VERDICT_LINES:
        lines = [*lines[: _VERDICT_LINES - 1], clip(lines[_VERDICT_LINES - 1], width - 1) + "…"]
    if more:
        subjects = ", ".join(f"{one.subject} {one.rule}" for one in findings[1:])
        lines.append(clip(printable(f"   and {more} more: {subjects}"), width))
    names = {Severity.CRITICAL: ("bold", "red"), Severity.WARNING: ("yellow",), Severity.NOTE: ()}[worst.severity]
    return [style(line, *names) for line in lines]


def _cpus(state: TopState, width: int, height: int, style: Style) -> _Block:
    everything = cpu_rows(state)
    # Formatting is the dearer part: no terminal shows more rows than it has lines.
    found = everything[:height]
    if not found:
        return _Block([style("CPUs: nothing recorded yet", "dim")], [])
    lines = table(CPU_COLUMNS, [row.cells for row in found], width, style, indent=" ", gap=" ")
    marked = ["!" + line[1:] if row.alarming else line for row, line in zip(found, lines[1:], strict=True)]
    colored = [style(line, "yellow") if row.alarming else line for row, line in zip(found, marked, strict=True)]
    head = [style(clip(CPU_GROUPS, width), "dim"), lines[0]]
    return _Block(head, colored, len(everything), "CPUs not shown")


def _sections(state: TopState, width: int, style: Style) -> list[_Block]:
    """Worst waits of the last ten intervals, devices and lines of the last one."""
    found = (
        (worst_waits(state.recent, state.source), "task"),
        (devices(state.last, state.source), "device"),
        (interrupts(state.last, state.source), "line"),
    )
    return [_block(section, name, width, style) for section, name in found]


def _block(section: Section | None, name: str, width: int, style: Style) -> _Block:
    if section is None:
        return _Block([], [])
    # Titles cost a line each: the first column's name says what the block is about.
    titles = {"task": "who waited", "device": "device", "line": "interrupt line"}
    columns = [
        Column(titles.get(one.title, one.title), one.right, one.flexible, one.least, one.width)
        for one in section.columns
    ]
    lines = table(columns, section.rows, width, style, indent=" ", gap="  ")
    return _Block(lines[:1], lines[1:])


def _share(blocks: Sequence[_Block], space: int) -> list[int]:
    """Share ``space`` rows out: each block its least, then by growth, never more than it has."""
    rows = [min(least, len(block.rows)) for least, block in zip(_LEAST, blocks, strict=True)]
    while sum(rows) > max(0, space):
        rows[max(range(len(rows)), key=lambda place: rows[place])] -= 1
    while sum(rows) < space:
        wanting = [place for place, block in enumerate(blocks) if rows[place] < len(block.rows)]
        if not wanting:
            break
        rows[min(wanting, key=lambda place: rows[place] / _GROWTH[place])] += 1
    return rows


def _cut(block: _Block, number: int, width: int) -> list[str]:
    """Return the block with ``number`` rows, the last of which says how many are hidden."""
    hidden = block.total - number
    if not (block.hidden and hidden and number):
        return [*block.head, *block.rows[:number]]
    return [*block.head, *block.rows[: number - 1], clip(f" {hidden + 1} {block.hidden}", width)]


def _footer(state: TopState) -> str:
    stalls = state.recent.events("cpustall", "stalls")
    parts = [f"{stalls.count} STALLS" if stalls and stalls.count else "no stalls" if stalls else "stalls not seen"]
    if devices(state.last, state.source) is None:
        parts += ["no device traffic" if state.last.seen("netdev") else "devices not seen"]
    parts += [_cost(state.recent), _lost(state.recent)]
    return printable(" " + " · ".join(parts))


def _lost(summary: Summary) -> str:
    losses = summary.losses
    if not losses.measured:
        return "losses not measured"
    reasons = [
        f"{probe} {reason} {count(number)}"
        for probe in sorted(losses.measured)
        for reason, number in losses.reasons[probe].items()
        if number
    ]
    return f"lost: {', '.join(reasons)}" if reasons else f"0 lost ({len(losses.measured)} probes measure it)"


def _cost(summary: Summary) -> str:
    cost = own_cost(summary)
    if cost is None:
        return "own cost not measured"
    return f"cost {percent(cost.cpu_share)} CPU {memory(cost.resident_bytes)}"


def _status(state: TopState, width: int) -> str:
    what = "PAUSED" if state.paused else "" if state.position else "live"
    where = f"interval {state.position}" if state.position else ""
    right = " " + "  ".join(filter(None, (what, where, f"by {state.sort}", f"last {RECENT} in '10'"))) + " "
    # What is shown matters more than which keys there are.
    return _fill(f" {KEYS}", max(0, width - display_width(right))) + clip(right, width)


def _fill(line: str, width: int) -> str:
    line = clip(line, width)
    return line + " " * (width - display_width(line))
