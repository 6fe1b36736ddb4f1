"""The difference of two recordings as text and for programs: the verdict first, then numbers, who, what limits it."""

from __future__ import annotations

from typing import Any

from tracer.difference.changes import Change
from tracer.difference.difference import Difference
from tracer.difference.grounds import times_of
from tracer.difference.limits import LEAST_BLOCKS
from tracer.difference.side import Side, Span
from tracer.difference.stretch import Stretch
from tracer.difference.verdict import headline, measured, then, who
from tracer.reports.layout import Style, wrap
from tracer.reports.narrow import LEAST_WIDTH
from tracer.reports.sections._section import PROSE_WIDTH, as_lines
from tracer.reports.sections.difference import changed, differing, parties
from tracer.units import count, duration, many, moment, percent, relative

__all__ = ["SCHEMA", "as_dict", "render"]

SCHEMA = "foreshock.diff/1"
_OPEN = 3


def render(found: Difference, *, width: int = 80, color: bool = False) -> list[str]:
    """Return the difference as lines of at most ``width`` (at least 40) cells."""
    width, style = max(width, LEAST_WIDTH), Style(color)
    prose = min(width, PROSE_WIDTH)
    striking = ("bold", "red") if found.slower or found.stretches else ("bold",)
    lines = [style(line, *striking) for line in wrap(headline(found), prose, "", "  ")]
    lines += [line for sentence in who(found) for line in wrap(sentence, prose, "  - ", "    ")]
    lines += [""]
    for name, side in (*(("before", one) for one in found.befores), ("after", found.after)):
        lines += wrap(_told(side), prose, f"{name:<8}", " " * 8)
    lines += wrap(_scope(found), prose)
    sections = (
        changed("slower", found.slower or tuple(change for one in found.stretches for change in one.slower)),
        *(changed(kind, getattr(found, kind)) for kind in ("faster", "load")),
        parties(then(found)) if found.slower or found.stretches or found.faster or found.load or who(found) else None,
        differing(found),
    )
    lines += [line for section in sections for line in as_lines(section, width, style)]
    limiting = [*_gate(found), *found.remarks]
    if limiting:
        lines += ["", style("Limits:", "bold")]
        lines += [line for one in limiting for line in wrap(one, prose, "  - ", "    ")]
    return lines


def _told(side: Side) -> str:
    source = side.node.source
    start, end = source.unix_ns(side.start_ns), source.unix_ns(side.end_ns)
    when = f"{moment(start).removesuffix(' UTC')} to {moment(end, date=moment(start)[:10] != moment(end)[:10])}"
    windows = f"{duration(side.seconds * 1e9)} in {many(len(side.node.seen_ns.nonzero()[0]), 'window')}"
    return " · ".join(filter(None, (source.host or "unknown host", side.name, when if start == start else "", windows)))


def _scope(found: Difference) -> str:
    """What was compared, and what would have been seen."""
    series = {one.measure.series for one in found.changes.every}
    said = f"{many(len(found.changes.every), 'number')} of {count(len(series))} series were compared"
    if found.sensitivity == found.sensitivity:
        said += f"; half of the latencies would have shown a change of {relative(found.sensitivity)}"
    return f"{said}."


def _gate(found: Difference) -> list[str]:
    said = [f"the gate can't tell: {one}" for one in found.lacking]
    if found.limit and len({*times_of(found.befores)}) == 1:
        shortest_ns = found.after.seconds * 1e9 * LEAST_BLOCKS / len(found.after.node.seen_ns.nonzero()[0])
        said.append(
            f"slow parts of after shorter than {duration(shortest_ns)}, or several with gaps, may pass with one time "
            "of before: three or more tell"
        )
    if not found.open:
        return said
    named = ", ".join(one.measure.series.title for one in found.open[:_OPEN])
    rest = f" and {len(found.open) - _OPEN} more" if len(found.open) > _OPEN else ""
    return [*said, f"more than {percent((found.limit or 1) - 1)} slower can't be ruled out in {named}{rest}"]


def as_dict(found: Difference) -> dict[str, Any]:
    """Return everything that the text says, in base units under stable names; ``reports.json.dumps`` makes it safe.

    Keys are added, never renamed or removed. What is not known is null.
    """
    return {
        "schema": SCHEMA,
        "verdict": headline(found),
        "who": who(found),
        "before": _side(found.before),
        "befores": [_side(one) for one in found.befores],
        "after": _side(found.after),
        "slower": [_change(one) for one in found.slower],
        "faster": [_change(one) for one in found.faster],
        "load": [_change(one) for one in found.load],
        "stretch": _stretch(found, found.stretches[0]) if found.stretches else None,
        "stretches": [_stretch(found, one) for one in found.stretches],
        "compared": [_change(one) for one in found.changes.every],
        "would_be_seen": found.sensitivity - 1,
        "memory": found.changes.memory,
        "fail_over": None if found.limit is None else found.limit - 1,
        "failing": [one.measure.title for one in found.failing],
        "doubtful": [one.measure.title for one in found.doubtful],
        "lacking": list(found.lacking),
        "not_ruled_out": [one.measure.series.title for one in found.open],
        "parties": [
            {
                "name": one.name,
                "cgroup": one.cgroup or None,
                "did": one.kind,
                "before_s_per_s": one.before,
                "after_s_per_s": one.after,
                "beyond_noise": one.judged or None,
            }
            for one in then(found)
        ],
        "differences": [
            {"setting": one.name, "before": one.usual or None, "after": one.values[0] or None} for one in found.settings
        ],
        "too_few_values": [series.title for series in found.changes.rare],
        "on_one_side_only": [series.title for series in found.changes.partly],
        "remarks": list(found.remarks),
    }


def _side(side: Side) -> dict[str, Any]:
    source = side.node.source
    return {
        "file": side.node.path,
        "host": source.host,
        "kernel": source.kernel,
        "boot_id": source.boot_id,
        "cpus": source.cpus,
        "start_unix_s": source.unix_ns(side.start_ns) / 1e9,
        "end_unix_s": source.unix_ns(side.end_ns) / 1e9,
        "seconds": side.seconds,
        "lost_share": side.node.lost,
    }


def _stretch(found: Difference, stretch: Stretch) -> dict[str, Any]:
    spans = [_span(found.after, one) for one in stretch.spans]
    # Of all spans together; each by itself is in "spans".
    whole = {**spans[0], "seconds": stretch.seconds, "end_unix_s": spans[-1]["end_unix_s"]}
    return {**whole, "spans": spans, "slower": [_change(one) for one in stretch.slower]}


def _span(side: Side, span: Span) -> dict[str, float]:
    began, ended = (side.node.source.unix_ns(round(ns)) / 1e9 for ns in side.clock_ns(span))
    return {"start_s": span[0], "seconds": span[1] - span[0], "start_unix_s": began, "end_unix_s": ended}


def _change(one: Change) -> dict[str, Any]:
    unit = one.measure.unit
    scale = 1e9 if unit == "ns" else 1.0
    return {
        "series": one.measure.series.metric,
        "part": one.measure.series.part,
        "quantity": one.measure.quantity,
        "title": one.measure.title,
        "told": measured(one),
        "kind": one.kind,
        "unit": "s" if unit == "ns" else unit,
        "before": one.before / scale,
        "after": one.after / scale,
        "after_low": one.low / scale,
        "after_high": one.high / scale,
        "ratio": one.ratio,
        "beyond_noise": one.surely > 0,
        "beyond_other_times": one.surely > 0 and not one.doubtful,
        "costs_s_per_s": one.lost,
    }
