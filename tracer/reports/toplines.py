"""The lines around the live view's tables: where and when, what stands out, what it cost, which keys there are."""

from __future__ import annotations

from tracer.analysis.cost import own_cost
from tracer.analysis.finding import Severity
from tracer.analysis.losses import missed
from tracer.analysis.summary import Summary
from tracer.escape import printable
from tracer.reports.layout import Style, wrap
from tracer.reports.sections import devices
from tracer.reports.state import RECENT, TopState
from tracer.reports.topcpus import WIDE
from tracer.units import clip, count, display_width, duration, many, memory, moment, percent

__all__ = ["footer", "header", "legend", "status", "verdict"]

_KEYS = "q quit  space pause  ←/→ step  s sort"
_SIGNS = {Severity.CRITICAL: "!! ", Severity.WARNING: "! ", Severity.NOTE: "- "}
_STYLES = {Severity.CRITICAL: ("bold", "red"), Severity.WARNING: ("yellow",), Severity.NOTE: ()}


def header(state: TopState, width: int) -> str:
    """Return who, where and when."""
    source, seen = state.source, state.last.intervals
    now = moment(source.unix_ns(seen.end_ns)) if seen.count else "waiting for the first interval"
    parts = [f"foreshock top  {source.host or 'unknown host'}", now if now != "–" else "time unknown"]
    parts += [f"waits of {what} only" for what in source.tasks_traced]
    parts += [f"every {duration(seen.typical_ns)}" if seen.count else ""]
    parts += [f"Linux {source.kernel}" if source.kernel else ""]
    return _fill(printable("  ".join(filter(None, parts))), width)


def verdict(state: TopState, width: int, style: Style, most: int, *, brief: bool = False) -> list[str]:
    """Return the worst finding in ``most`` lines at most and a line on what else there is.

    ``brief`` says in two lines who did what where, without numbers and without the rest.
    """
    things, caveats = state.verdict.things, state.verdict.caveats
    others = [f"{one.topic} ({one.subject})" for one in things[1:]]
    others += [f"caveat: {one.topic}" for one in caveats]
    if things:
        worst, names = things[0], _STYLES[things[0].severity]
        what = f"{worst.subject}: {worst.topic}." if brief else worst.what
        lines = wrap(f"{what} {worst.who}", width, _SIGNS[worst.severity], "   ")
    else:
        names, lines = ("bold",), wrap(state.verdict.headline, width)
    most = 2 if brief else most
    if len(lines) > most:
        lines = [*lines[: most - 1], clip(f"{lines[most - 1]} …", width)]
    if others and not brief:
        more = f"and {len(others)} more: " if things else ""
        lines.append(clip(printable(f"   {more}{', '.join(others)}"), width))
    return [style(line, *names) for line in lines]


def footer(state: TopState) -> str:
    """Return what was quiet, what foreshock cost, and last, since that may be long, what it lost."""
    stalls = state.recent.events("cpustall", "stalls")
    quiet = "no stalls" if stalls else "stalls not seen"
    parts = [f"{count(stalls.count)} STALL{'S' if stalls.count > 1 else ''}"] if stalls and stalls.count else []
    parts += [] if parts else [quiet]
    if devices(state.last, state.source) is None:
        parts += ["no device traffic" if state.last.seen("netdev") else "devices not seen"]
    lost = _lost(state.recent)
    parts += [_cost(state.recent), lost] if lost.startswith("lost: ") else [lost, _cost(state.recent)]
    return printable(" " + " · ".join(parts))


def legend(state: TopState) -> str:
    """Return what the columns mean that don't say it, how they are ordered, and where in a recording this is."""
    where = f"; interval {state.position}" if state.position else ""
    seen = state.recent.intervals.count
    over = f"the last {many(seen, 'interval')}" if seen != 1 else "this interval"
    return f"max10: the worst of {over}; worst first by {state.sort}{where}"


def status(state: TopState, width: int) -> str:
    """Return the keys and what is shown; that matters more where both don't fit."""
    what = "PAUSED" if state.paused else "" if state.position else "live"
    where = f"interval {state.position}" if state.position else ""
    parts = [what, where, f"by {state.sort}"]
    if width >= WIDE:
        parts.append(f"max10: of {RECENT} intervals")
    right = " " + "  ".join(filter(None, parts)) + " "
    return _fill(f" {_KEYS}", max(0, width - display_width(right))) + clip(right, width)


def _lost(summary: Summary) -> str:
    losses = summary.losses
    if not losses.measured:
        return "losses not measured"
    reasons = [
        f"{probe} {reason} {count(number)}"
        for probe in sorted(losses.measured)
        for reason, number in missed(probe, losses.reasons[probe]).items()
    ]
    return f"lost: {', '.join(reasons)}" if reasons else "0 lost"


def _cost(summary: Summary) -> str:
    cost = own_cost(summary)
    if cost is None:
        return "own cost not measured"
    return f"own cost {percent(cost.cpu_share)} CPU, {memory(cost.resident_bytes)}"


def _fill(line: str, width: int) -> str:
    line = clip(line, width)
    return line + " " * (width - display_width(line))
