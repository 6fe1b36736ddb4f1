"""The comparison of many nodes as text and for programs: the verdict first, then suspects, settings, what limits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracer.analysis.names import quoted
from tracer.compare.comparison import Common, Comparison
from tracer.compare.saying import sentence
from tracer.compare.suspect import Detail, Suspect
from tracer.compare.telling import Told
from tracer.compare.verdict import headline, measured
from tracer.reports.layout import Style, wrap
from tracer.reports.narrow import LEAST_WIDTH
from tracer.reports.sections._section import PROSE_WIDTH, ROWS, as_lines
from tracer.reports.sections.comparison import differing, suspects, victims
from tracer.units import MISSING, count, duration, many, moment, times

__all__ = ["SCHEMA", "as_dict", "render"]

SCHEMA = "foreshock.compare/1"
_FEW = (
    "fewer than 8 nodes: their own scatter is not known, so that only deviations of 25 % and more count, and "
    "confidence is low"
)
_BY_START = "the recordings are of different times: they are laid beside each other from their starts"


def render(
    comparison: Comparison,
    details: Mapping[str, Detail],
    skipped: Sequence[tuple[str, str]] = (),
    *,
    width: int = 80,
    color: bool = False,
) -> list[str]:
    """Return the comparison as lines of at most ``width`` (at least 40) cells.

    ``details`` are of suspects, by label; ``skipped`` are recordings that could not be read, with the reason.
    """
    width, style = max(width, LEAST_WIDTH), Style(color)
    prose = min(width, PROSE_WIDTH)
    striking = ("bold", "red") if comparison.suspects else ("bold", "yellow") if comparison.deviates else ("bold",)
    lines = [style(line, *striking) for line in wrap(headline(comparison, details), prose, "", "  ")]
    lines += ["", *wrap(_scope(comparison), prose)]
    for section in (suspects(comparison, details), victims(comparison), differing(comparison)):
        lines += as_lines(section, width, style)
    if comparison.together:
        lines += ["", style("COMMON CAUSE", "bold")]
        lines += [
            line
            for one in comparison.together[:ROWS]
            for sentence in _together(one)
            for line in wrap(sentence, prose, "  - ", "    ")
        ]
    if comparison.ranks[1:]:
        lines += ["", style("RANKS", "bold")]
        lines += [line for one in comparison.ranks[:ROWS] for line in wrap(sentence(one), prose, "  - ", "    ")]
        lines += [f"  - and {len(comparison.ranks) - ROWS} more"] if len(comparison.ranks) > ROWS else []
    limiting = _limits(comparison, skipped)
    if limiting:
        lines += ["", style("Limits:", "bold")]
        lines += [line for one in limiting for line in wrap(one, prose, "  - ", "    ")]
    return lines


def _together(common: Common) -> Iterator[str]:
    """Who changed together, and what these have and the others have not."""
    named = ", ".join(f"{quoted(label)} {times(ratio)}" for label, ratio in common.changed[:ROWS])
    rest = f" and {len(common.changed) - ROWS} more" if len(common.changed) > ROWS else ""
    yield f"{common.series.title}: {len(common.changed)} of {common.nodes} nodes: {named}{rest}"
    for one in common.splits[:ROWS]:
        these, others = one.value or MISSING, one.usual or MISSING
        yield f"nearly all of these, and not the others: {one.name} {these} (others {others})"


def _scope(comparison: Comparison) -> str:
    """What was compared."""
    grid = comparison.grid
    start, end = grid.unix_ns(0), grid.unix_ns(grid.windows)
    when = f", {moment(start)} to {moment(end)}" if start == start else ""
    windows = f"{many(grid.windows, 'window')} of {duration(grid.length_ns)}"
    # The first and the last one are mostly parts.
    if grid.compared < grid.windows - 2:
        windows += f", of which {count(grid.compared)} were recorded"
    return f"{many(len(comparison.labels), 'node')}, {count(comparison.judged)} series, {windows}{when}"


def _limits(comparison: Comparison, skipped: Sequence[tuple[str, str]]) -> list[str]:
    """What the verdict could not see, each in a sentence."""
    found = [_FEW] if comparison.few else []
    every = max((node.every for node in comparison.grid.nodes), default=1)
    found += [f"so many recordings that one of {every} intervals was read"] if every > 1 else []
    grid = comparison.grid
    found += [_BY_START] if grid.by_start else []
    hosts = Counter(node.source.host for node in comparison.grid.nodes)
    found += [
        f"{number} recordings are of a host called {quoted(host)}: if it is one, foreshock diff compares it with itself"
        for host, number in hosts.items()
        if host and number > 1
    ]
    if grid.by_start:
        found += [
            f"{len(one.changed)} of {one.nodes} deviate in {one.series.title}: at different times, no common cause"
            for one in comparison.common
            if not one.lasting
        ]
    found += [
        f"{one.label} deviates in {measured(one.deviations[0])}, but its ranks lost nothing to that"
        for one in comparison.unfelt
    ]
    nodes = len(comparison.labels)
    found += [f"{title}: recorded on {having} of {nodes} nodes" for title, having in comparison.partly]
    found += [f"skipped: {path}: {why}" for path, why in (*skipped, *comparison.left_out)]
    return found + [f"{label}: {remark}" for label, remark in comparison.remarks]


def as_dict(
    comparison: Comparison, details: Mapping[str, Detail], skipped: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """Return everything that the text says, in base units under stable names; ``reports.json.dumps`` makes it safe.

    Keys are added, never renamed or removed. What is not known is null.
    """
    grid = comparison.grid
    return {
        "schema": SCHEMA,
        "verdict": headline(comparison, details),
        "nodes": list(comparison.labels),
        "windows": grid.windows,
        "windows_recorded": grid.compared,
        "window_s": grid.length_ns / 1e9,
        "start_unix_s": grid.unix_ns(0) / 1e9,
        "end_unix_s": grid.unix_ns(grid.windows) / 1e9,
        "series": comparison.judged,
        "few_nodes": comparison.few,
        "aligned_by_start": grid.by_start,
        "suspects": [_suspect(one, grid.length_ns, details.get(one.label, Detail())) for one in comparison.suspects],
        "victims": [_suspect(one, grid.length_ns, Detail()) for one in comparison.victims],
        "unfelt": [_suspect(one, grid.length_ns, Detail()) for one in comparison.unfelt],
        "common": [
            {
                "series": one.series.metric,
                "part": one.series.part,
                "changed": len(one.changed),
                "nodes": one.nodes,
                "lasting": one.lasting,
                "since_unix_s": one.since_ns / 1e9,
                "members": [{"node": label, "judged_ratio": ratio} for label, ratio in one.changed],
                "differences": [
                    {"setting": row.name, "these": row.value or None, "others": row.usual or None} for row in one.splits
                ],
            }
            for one in comparison.together
        ],
        "differences": [
            {
                "setting": one.name,
                "suspects": {
                    suspect.label: value or None for suspect, value in zip(comparison.suspects, one.values, strict=True)
                },
                "twins": one.usual or None,
                "agree": one.having,
                "of": one.of,
            }
            for one in comparison.differences
        ],
        "ranks": [
            {
                "node": one.label,
                "job": one.job,
                "rank": one.rank,
                "kind": one.kind,
                "slept_share": one.slept,
                "peers_slept_share": one.usual,
                "peers": one.peers,
                "slept_for": one.slept_for,
                "lasting": one.lasting,
                "since_unix_s": one.since_ns / 1e9,
                "before_slept_share": one.before,
                "worked_share": one.worked,
            }
            for one in comparison.ranks
        ],
        "reservations": [
            {"node": one.label, "kind": one.kind, "probe": one.probe or None, "share": one.share}
            for one in comparison.reservations
        ],
        "skipped": [{"file": path, "why": why} for path, why in (*skipped, *comparison.left_out)],
        "remarks": [{"node": label, "remark": remark} for label, remark in comparison.remarks],
        "recorded_on_some": dict(comparison.partly),
    }


def _suspect(one: Suspect, length_ns: int, detail: Detail) -> dict[str, Any]:
    return {
        "node": one.label,
        "file": one.node.path,
        "cause": "quota" if detail.throttled else one.cause,
        "confidence": one.confidence,
        "since_unix_s": None if one.lasting else one.since_ns / 1e9,
        "lasting": one.lasting,
        "since_window": one.since_window,
        "gap_unix_s": one.gap_ns / 1e9,
        "cpus": detail.cpus,
        "who": detail.who,
        "who_is_usual": detail.usual,
        "taken": detail.taken,
        "rank": detail.rank,
        "jobs": detail.jobs,
        "next": detail.next,
        "deviations": [_deviation(told, length_ns) for told in one.deviations],
    }


def _deviation(told: Told, length_ns: int) -> dict[str, Any]:
    scale, unit = (1e9, "s") if told.unit == "ns" else (1.0, told.unit)
    one = told.deviation
    return {
        "series": told.series.metric,
        "part": told.series.part,
        "form": one.form,
        "quantity": told.quantity,
        "unit": unit,
        "value": told.value / scale,
        "peers_median": told.median / scale,
        "peers_low": told.low / scale,
        "peers_high": told.high / scale,
        "peers": told.peers,
        "ratio": told.ratio,
        "judged_ratio": one.ratio,
        "score": one.score,
        "lost_share": one.lost,
        "first_window": one.begin,
        "seconds": (one.end - one.begin) * length_ns / 1e9,
    }
