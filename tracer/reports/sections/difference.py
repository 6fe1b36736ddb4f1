"""Two sides beside each other: what takes longer, what there is more to do, who had the time, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.compare.verdict import amount
from tracer.difference.changes import Change
from tracer.difference.difference import Difference
from tracer.difference.verdict import by, interval, signed
from tracer.difference.whose import Party
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, more
from tracer.units import MISSING, duration

__all__ = ["changed", "differing", "parties"]

_TITLES: Mapping[str, str] = {
    "slower": "SLOWER  than the noise explains; what it costs is of each second",
    "faster": "FASTER  than the noise explains",
    "load": "MORE OR LESS TO DO",
}
_DID: Mapping[str, str] = {"held": "was waited for", "ran": "ran", "waited": "waited for CPUs"}


def changed(kind: str, changes: Sequence[Change]) -> Section | None:
    """What is slower, faster, or more to do."""
    rows = [
        [
            one.measure.title,
            *(amount(value, one.measure.unit) for value in (one.before, one.after)),
            by(one),
            interval(one),
            signed(one.lost),
        ]
        for one in changes[:ROWS]
    ]
    columns = [
        Column("what", right=False, flexible=True, least=24),
        *(Column("before"), Column("after"), Column("change"), Column("between", rank=2), Column("costs", rank=1)),
    ]
    return Section(_TITLES[kind], columns, rows, more(changes[ROWS:], "other")) if rows else None


def parties(found: Sequence[Party]) -> Section | None:
    """Who had more or less time."""
    rows = [
        [one.name, _DID[one.kind], *(duration(value * 1e9) for value in (one.before, one.after)), signed(one.change)]
        for one in found
    ]
    columns = [
        Column("who", right=False, flexible=True, least=16),
        *(Column("did", right=False), Column("before"), Column("after"), Column("change", rank=1)),
    ]
    if any(one.cgroup not in ("", "/") for one in found):
        columns.append(Column("cgroup", right=False, flexible=True, least=10, tail=True, rank=2))
        rows = [[*row, one.cgroup] for row, one in zip(rows, found, strict=True)]
    return Section("WHO  time of each second, of all CPUs and all that wait together", columns, rows) if rows else None


def differing(found: Difference) -> Section | None:
    """Rows of the fingerprint that differ."""
    rows = [[one.name, one.usual or MISSING, one.values[0] or MISSING] for one in found.settings]
    columns = [
        Column("setting", right=False, flexible=True, least=20, tail=True),
        *(Column(title, right=False, flexible=True, least=10) for title in ("before", "after")),
    ]
    title = "WHAT DIFFERS  settings of the two recordings"
    return Section(title, columns, rows[: 2 * ROWS], more(rows[2 * ROWS :], "other row")) if rows else None
