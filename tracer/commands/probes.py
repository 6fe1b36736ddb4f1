"""List the probes: what each shows, whether it can run here, what it costs per event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tracer.commands._streams import tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracer.commands._measuring import Cost
    from tracer.probe import Probe

GROUP = "Verify"
ORDER = 2

_WIDTH = 80
_MEASURING_SECONDS = 8.0  # a busy node is no reason to take forever; what was begun then is finished
_LONGEST_REMARK = 200  # a compiler has more to say


@dataclass(frozen=True)
class _Row:
    """A probe, whether it can run here (None: not known), why not or without what, and its cost."""

    probe: Probe
    available: bool | None
    remark: str
    cost: Cost | None


@click.command()
@click.option("--no-measure", is_flag=True, help="Don't measure what each costs: quick.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: probes.")
def probes(no_measure: bool, as_json: bool) -> None:
    """List the probes: what each shows, whether it can run here, what it costs per event.

    Attaches each for a moment. The cost is what a probe adds to a program that runs anyway, measured under a small
    load by the kernel's own accounting, averaged over the events it handles. As root; others get the plain list.

    \b
    foreshock probes                    about 10 seconds
    foreshock probes --no-measure       about 2 seconds
    """
    from tracer.commands._progress import Progress

    progress = Progress(enabled=True)
    rows, notes = _find_out(not no_measure, lambda text: progress.say(f"probes: {text}"))
    progress.end()
    tell(_as_json(rows, notes) if as_json else _as_text(rows, notes))


def _find_out(measured: bool, say: Callable[[str], None]) -> tuple[list[_Row], list[str]]:
    """Return a row per probe, and what could not be found out."""
    import os
    import time

    from tracer.commands._measuring import available, measure
    from tracer.errors import UnavailableError
    from tracer.probes import all_probes
    from tracer.units import clip

    every = all_probes()
    until = time.monotonic() + _MEASURING_SECONDS
    say("attaching…")
    try:
        if os.geteuid():
            raise UnavailableError("attaching a probe needs root.")
        found = available()
    except UnavailableError as error:
        unknown = [_Row(probe, None, "", None) for probe in every.values()]
        return unknown, [f"Whether they can run here isn't known: {error.message}"]
    able = [probe for probe in every.values() if probe.name not in found.refused and probe.hooks]
    costs, notes = {}, []
    if measured:
        try:
            costs = measure(able, say, until)
        except UnavailableError as error:
            notes.append(f"Costs are not known: {error.message}")
    rows = []
    for name, probe in every.items():
        refused = clip(found.refused.get(name, ""), _LONGEST_REMARK)
        without = f"without a part: {found.missing[name]}" if name in found.missing else ""
        rows.append(_Row(probe, not refused, refused or without, costs.get(name)))
    return rows, notes


def _as_json(rows: list[_Row], notes: list[str]) -> str:
    import json

    found: list[dict[str, Any]] = [
        {
            "name": row.probe.name,
            "tier": row.probe.tier,
            "summary": row.probe.summary,
            "aliases": list(row.probe.aliases),
            "available": row.available,
            "remark": row.remark,
            "ns_per_event": round(row.cost.ns, 1) if row.cost else None,
            "events": row.cost.events if row.cost else 0,
        }
        for row in rows
    ]
    return json.dumps({"probes": found, "notes": notes}, indent=2)


def _as_text(rows: list[_Row], notes: list[str]) -> str:
    from tracer.reports.layout import wrap

    name_width = max(len(row.probe.name) for row in rows)
    lines = [f"{'probe':<{name_width}}  tier   here  ns/event  shows"]
    indent = " " * (name_width + 25)
    for row in rows:
        here = {True: "yes", False: "no", None: "?"}[row.available]
        first = f"{row.probe.name:<{name_width}}  {row.probe.tier:<5}  {here:<4}  {_ns(row):>8}  "
        lines += wrap(row.probe.summary, _WIDTH, first, indent)
        if row.probe.aliases:
            lines += wrap(f"as {', '.join(row.probe.aliases)}", _WIDTH, indent, indent)
        if row.remark:
            lines += wrap(row.remark, _WIDTH, indent, indent)
    lines.append("")
    lines += wrap("--probes takes these names, or what bcc calls its tool for the same question ('as').", _WIDTH)
    for note in notes:
        lines += wrap(note, _WIDTH)
    return "\n".join(lines)


def _ns(row: _Row) -> str:
    if not row.probe.hooks:
        return "none"  # it has no program that an event would run
    return f"{row.cost.ns:.0f}" if row.cost else "–"
