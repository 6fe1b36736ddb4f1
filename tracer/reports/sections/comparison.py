"""Nodes beside each other: what suspects do and their peers don't, and in what they are set up otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from tracer.compare.comparison import Comparison
from tracer.compare.facts import Difference
from tracer.compare.suspect import Detail, Suspect
from tracer.compare.verdict import amount, since
from tracer.escape import printable
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, more
from tracer.units import MISSING, percent, times

__all__ = ["differing", "suspects", "victims"]

_EACH = 4  # deviations of one node; the rest is in the JSON
_COLUMNS = 3  # suspects whose settings are shown
_CAUSES = {"none seen": "no cause seen on the host"}


def suspects(comparison: Comparison, details: Mapping[str, Detail]) -> Section | None:
    """Nodes that deviate by themselves, each with the numbers of its peers meanwhile."""
    return _nodes(
        comparison.suspects, "SUSPECTS  beside the median and the middle half of their peers; times are UTC", details
    )


def victims(comparison: Comparison) -> Section | None:
    """Nodes that only wait more than the others do."""
    return _nodes(comparison.victims, "VICTIMS  nothing on them takes longer: they wait for others, or have less to do")


def _nodes(nodes: Sequence[Suspect], title: str, details: Mapping[str, Detail] | None = None) -> Section | None:
    rows, notes = [], []
    for one in nodes[:ROWS]:
        for number, told in enumerate(one.deviations[:_EACH]):
            spread = f"{amount(told.low, told.unit)} – {amount(told.high, told.unit)}"
            rows.append(
                [
                    "" if number else one.label,
                    f"{told.series.title} {told.quantity}".rstrip(),
                    *(amount(value, told.unit) for value in (told.value, told.median)),
                    spread,
                    times(told.ratio),
                    "" if number else since(one).removesuffix(" UTC"),
                ]
            )
        detail = (details or {}).get(one.label, Detail())
        notes.append(_note(one, detail))
        if details is not None:
            notes.append(f"Next: {detail.next or _look(one)}")
    columns = [
        Column("node", right=False, flexible=True, least=8),
        Column("what", right=False, flexible=True, least=16),
        *(Column("node's"), Column("peers'"), Column("spread", rank=3), Column("ratio", rank=2)),
        Column("since", rank=1),
    ]
    return Section(title, columns, rows, more(nodes[ROWS:], "other node"), notes=notes) if rows else None


def _note(one: Suspect, detail: Detail) -> str:
    hidden = len(one.deviations) - _EACH
    rest = f", {hidden} more deviations" if hidden > 0 else ""
    cause = "quota" if detail.throttled else _CAUSES.get(one.cause, one.cause)
    where = f" {detail.cpus}." if detail.cpus else ""
    who = "Who had the CPU there has it on its peers for as long." if detail.usual else detail.who
    taken = f"; {detail.taken}" if detail.taken else ""
    said = f"{one.label}: likely cause: {cause}; confidence {one.confidence}{rest}{taken}.{where} {who}"
    return said.rstrip()


def _look(one: Suspect) -> str:
    """What to do where the recording by itself shows nothing to do."""
    return f"foreshock summary {shlex.quote(printable(one.node.path))}, for what else stands out on it"


def differing(comparison: Comparison) -> Section | None:
    """Rows of the fingerprint in which suspects differ from the nodes that don't deviate."""
    shown = comparison.suspects[:_COLUMNS]
    rows = [_row(one, len(shown)) for one in comparison.differences]
    columns = [
        Column("setting", right=False, flexible=True, least=20, tail=True),
        *(Column(printable(one.label), right=False, flexible=True, least=10) for one in shown),
        Column("their twins", right=False, flexible=True, least=10),
        Column("agree", rank=1),
    ]
    title = "WHAT DIFFERS  settings in which suspects are not like nearly all others"
    return Section(title, columns, rows[: 2 * ROWS], more(rows[2 * ROWS :], "other row")) if rows else None


def _row(one: Difference, shown: int) -> list[str]:
    values = (*one.values[:shown], one.usual)
    return [one.name, *(value or MISSING for value in values), percent(one.having / one.of)]
