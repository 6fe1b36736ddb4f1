"""The summary as text: the verdict first, then the numbers, at the end what was lost and what it cost."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import chain

from tracer.analysis.cost import own_cost
from tracer.analysis.finding import Finding, Severity
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import Verdict
from tracer.probes import all_probes
from tracer.reports.layout import Column, Style, wrap
from tracer.reports.narrow import LEAST_WIDTH, ROOMY, lines_of, rows_of
from tracer.reports.sections import SECTIONS, Section
from tracer.reports.sections._section import PROSE_WIDTH
from tracer.reports.sections.stacks import folded
from tracer.units import count, duration, many, memory, moment, percent

__all__ = ["loss_meaning", "render"]

# Signs for those who see no colour, words for those who don't know the signs.
_SIGNS = {Severity.CRITICAL: "!!", Severity.WARNING: "! ", Severity.NOTE: "- "}
_COLORS = {Severity.CRITICAL: ("bold", "red"), Severity.WARNING: ("bold", "yellow"), Severity.NOTE: ("bold",)}


def render(
    summary: Summary,
    verdict: Verdict,
    source: Source,
    *,
    title: str = "",
    warning: str = "",
    width: int = 80,
    color: bool = False,
    first: Sequence[Section] = (),
    last: Sequence[Section] = (),
) -> list[str]:
    """Return the whole summary as lines of at most ``width`` (at least 40) cells.

    ``title`` is shown beside the host, e.g. the file's name; ``warning`` says what is missing from the recording;
    ``first`` and ``last`` are shown before and after the summary's own tables.
    """
    width, style = max(width, LEAST_WIDTH), Style(color)
    lines = _heading(summary, source, title, width, style)
    if warning:
        lines += [style(line, "bold", "yellow") for line in wrap(f"WARNING: {warning}", width, "", "  ")]
    lines += ["", *_verdict(verdict, source, width, style)]
    if not summary.intervals.count:
        return lines
    for section in (*first, *(make(summary, source) for make in SECTIONS), *last):
        lines += _section(section, width, style)
    lines += ["", *wrap(_losses(summary), width, "LOSSES  ", "        ")]
    return [*lines, *wrap(_cost(summary), width, "COST    ", "        ")]


def _heading(summary: Summary, source: Source, title: str, width: int, style: Style) -> list[str]:
    """Who, where and when."""
    seen = summary.intervals
    parts = [source.host or "unknown host", f"Linux {source.kernel}" if source.kernel else ""]
    parts += [f"{source.cpus} CPUs" if source.cpus else "", f"boot {source.boot_id[:8]}" if source.boot_id else ""]
    parts += [title]
    first = [style(line, "bold") for line in wrap(" · ".join(filter(None, parts)), width, "", "  ")]
    if not seen.count:
        return first
    typical_ns = min(seen.typical_ns, seen.ns)  # the only one may have ended early
    start, end = source.unix_ns(seen.start_ns), source.unix_ns(seen.end_ns)
    when = [f"{moment(start)} to {moment(end)}" if start == start else "wall-clock time unknown", duration(seen.ns)]
    when += [f"{many(seen.count, 'interval')} of {duration(typical_ns)}"]
    lines = [*first, *wrap(" · ".join(when), width, "", "  ")]
    labels = " · ".join(f"{name}={value}" for name, value in source.labels)
    for what, told in (("recorded by: ", shlex.join(source.command)), ("labels: ", labels)):
        lines += _dim(wrap(told, width, what, "  "), style) if told else []
    return lines


def _verdict(verdict: Verdict, source: Source, width: int, style: Style) -> list[str]:
    """Headline, findings, caveats, what is normal, what was not seen."""
    width = min(width, PROSE_WIDTH)
    severity = verdict.severity
    striking = _COLORS[severity] if severity and severity > Severity.NOTE else ("bold",)
    lines = [style(line, *striking) for line in wrap(verdict.headline, width, "VERDICT  ", "  ")]
    for finding in verdict.things:
        lines += ["", *_finding(finding, width, style)]
    if verdict.caveats:
        lines += ["", *_caveats(verdict.caveats, width, style)]
    if verdict.normal:
        rows = [(one.question, one.measured, one.limit) for one in verdict.normal]
        columns = [Column("Asked", False), Column("found", False, True), Column("normal", False, True)]
        lines += ["", style("Within normal:", "bold"), *lines_of(columns, rows, width, style)]
    if missing := [*_by_reason(verdict.missing), *_not_traced(verdict, source)]:
        lines += ["", style("Not seen:", "bold")]
        lines += [line for one in missing for line in wrap(one, width, "  - ", "    ")]
    return lines


def _by_reason(missing: Sequence[str]) -> list[str]:
    """Questions that were left open for the same reason share a line."""
    questions: dict[str, list[str]] = {}
    for sentence in missing:
        question, _, reason = sentence.partition(": ")
        questions.setdefault(reason, []).append(question)
    return [f"{', '.join(asked)}: {reason}" for reason, asked in questions.items()]


def _not_traced(verdict: Verdict, source: Source) -> list[str]:
    """What the run was told, or forced, to leave out; not again what a question was left open by."""
    told = " ".join(verdict.missing)
    refused = [f"{probe} could not start: {why}" for probe, why in source.refused]
    refused = [one for one in refused if one not in told]
    parts: dict[str, list[str]] = {}
    for probe, why in source.missing:
        parts.setdefault(probe, []).append(why)
    missing = [f"a part of {probe}: {'; '.join(reasons)}" for probe, reasons in parts.items()]
    filters = [
        f"{'waits and stacks of tasks' if what in source.tasks_traced else 'anything'} outside of {what}"
        for what in source.traced
    ]
    return filters + refused + missing


def _losses(summary: Summary) -> str:
    """What was lost, by probe, and what that means; then those that lost nothing, as far as it was measured."""
    parts: list[str] = []
    none: list[str] = []
    for probe in sorted(summary.losses.measured):
        lost = {reason: number for reason, number in summary.losses.reasons[probe].items() if number}
        told = ", ".join(f"{count(number)} {loss_meaning(probe, reason)}" for reason, number in lost.items())
        (parts if told else none).append(f"{probe}: {told}" if told else probe)
    if none:
        parts.append(f"0 of {', '.join(none)}")
    if summary.losses.unmeasured:
        parts.append(f"not measured for {', '.join(summary.losses.unmeasured)}")
    return "; ".join(parts) or "not measured"


def loss_meaning(probe: str, reason: str) -> str:
    """Return a loss as its probe explains it; the reason alone where no probe known here does."""
    losses = all_probes()[probe].losses if probe in all_probes() else ()
    told = dict.fromkeys(loss.help for loss in losses if loss.reason == reason)
    return f"{reason} ({' or '.join(told)})" if told else reason


def _cost(summary: Summary) -> str:
    """The tracer's own cost."""
    cost = own_cost(summary)
    if cost is None:
        return "not measured (agent.cost was not recorded)"
    programs = "kernel programs not measured (their time is sampled for one second a minute)"
    if cost.program_share == cost.program_share:
        programs = f"kernel programs {percent(cost.program_share)} of one CPU"
        dearest = max((one for one in cost.programs if one.sampled_ns), key=lambda one: one.share)
        programs += f" (most: {dearest.program}, {duration(dearest.ns_per_run)} a run)"
    memories = f"{memory(cost.resident_bytes)} resident, {memory(cost.map_bytes)} of maps"
    return f"{programs}; process {percent(cost.agent_share)} of one CPU, {memories}"


def _section(section: Section | None, width: int, style: Style) -> list[str]:
    if section is None:
        return []
    heads, rows = rows_of(section.columns, section.rows, width, style)
    for row, frames in zip(rows, section.stacks, strict=False):
        row.append(f"      {folded(frames, width - 6)}")
    lines = ["", *(style(line, "bold") for line in wrap(section.title, width, "", "  ")), *heads, *chain(*rows)]
    below = wrap(section.more, width, "  ", "  ") if section.more else []
    below += [line for note in section.notes for line in wrap(note, min(width, PROSE_WIDTH), "  ", "    ")]
    return [*lines, *_dim(below, style)]


def _caveats(caveats: Sequence[Finding], width: int, style: Style) -> list[str]:
    """All that limits the other answers, in one paragraph."""
    told = " ".join(f"{one.what} {one.who}".strip() for one in caveats)
    places = ", ".join(dict.fromkeys(f"docs/reading.md#{one.anchor}" for one in caveats))
    return [*wrap(f"Caveat: {told}", width, " -  ", "    "), *_dim(wrap(f"see {places}", width, "    ", "    "), style)]


def _dim(lines: Sequence[str], style: Style) -> list[str]:
    return [style(line, "dim") for line in lines]


def _finding(finding: Finding, width: int, style: Style) -> list[str]:
    where, _, rest = finding.what.partition(":")
    lines = wrap(f"{where}:{rest}" if rest else finding.what, width, f" {_SIGNS[finding.severity]} ", "    ")
    lines[0] = style(lines[0], *_COLORS[finding.severity])
    if finding.who:
        lines += wrap(finding.who, width, "    ", "    ")
    after = f"next: {finding.next}" + (f" (docs/reading.md#{finding.anchor})" if finding.anchor else "")
    return [*lines, *_dim(wrap(after, width, "    ", "          " if width >= ROOMY else "    "), style)]
