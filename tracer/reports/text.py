"""The summary as text: the verdict first, then the numbers, at the end what was lost and what it cost."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.analysis.cost import own_cost
from tracer.analysis.finding import Finding, Severity
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import Verdict
from tracer.escape import printable
from tracer.probes import all_probes
from tracer.reports.layout import Column, Style, table, wrap
from tracer.reports.sections import SECTIONS, Section
from tracer.reports.sections._section import PROSE_WIDTH
from tracer.reports.sections.stacks import folded
from tracer.units import clip, count, duration, many, memory, moment, percent

__all__ = ["loss_meaning", "render"]

# Signs for those who see no colour, words for those who don't know the signs.
_SIGNS = {Severity.CRITICAL: "!!", Severity.WARNING: "! ", Severity.NOTE: "- "}
_COLORS = {Severity.CRITICAL: ("bold", "red"), Severity.WARNING: ("bold", "yellow"), Severity.NOTE: ("bold",)}
_LEAST_WIDTH = 80


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
    """Return the whole summary as lines of at most ``width`` (at least 80) cells.

    ``title`` is shown beside the host, e.g. the file's name; ``warning`` says what is missing from the recording;
    ``first`` and ``last`` are shown before and after the summary's own tables.
    """
    width, style = max(width, _LEAST_WIDTH), Style(color)
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
    first = style(clip(printable(" · ".join(filter(None, parts))), width), "bold")
    if not seen.count:
        return [first]
    typical_ns = min(seen.typical_ns, seen.ns)  # the only one may have ended early
    start, end = source.unix_ns(seen.start_ns), source.unix_ns(seen.end_ns)
    when = [f"{moment(start)} to {moment(end)}" if start == start else "wall-clock time unknown", duration(seen.ns)]
    when += [f"{many(seen.count, 'interval')} of {duration(typical_ns)}"]
    return [first, *wrap(" · ".join(when), width)]


def _verdict(verdict: Verdict, source: Source, width: int, style: Style) -> list[str]:
    """Headline, findings, caveats, what is normal, what was not seen."""
    width = min(width, PROSE_WIDTH)
    severity = verdict.severity
    head = f"VERDICT  {verdict.headline}"
    lines = [style(head, *(_COLORS[severity] if severity and severity > Severity.NOTE else ("bold",)))]
    for finding in verdict.things:
        lines += ["", *_finding(finding, width, style)]
    if verdict.caveats:
        lines += ["", *_caveats(verdict.caveats, width, style)]
    if verdict.normal:
        rows = [(one.question, one.measured, one.limit) for one in verdict.normal]
        columns = [Column("Asked", False), Column("found", False, True), Column("normal", False, True)]
        lines += ["", style("Within normal:", "bold"), *table(columns, rows, width, style)]
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
    tasks = dict(source.task_filters)
    filters = [
        f"{'waits and stacks of tasks' if name in tasks else 'anything'} outside of {name} {value}"
        for name, value in source.filters
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
    body = table(section.columns, section.rows, width, style) if section.columns else []
    if section.stacks:
        below = [f"      {folded(frames, width - 6)}" for frames in section.stacks]
        body = [body[0], *(line for pair in zip(body[1:], below, strict=True) for line in pair)]
    lines = ["", style(clip(section.title, width), "bold"), *body]
    below = [f"  {section.more}"] if section.more else []
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
    after = f"next: {finding.next} (docs/reading.md#{finding.anchor})"
    return [*lines, *_dim(wrap(after, width, "    ", "          "), style)]
