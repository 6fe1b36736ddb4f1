"""Which part of a recording the user means, checked against what was recorded."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tracer.commands._range import TimeRange
from tracer.errors import UsageError
from tracer.units import many

if TYPE_CHECKING:
    from tracer.analysis.source import Source
    from tracer.reports.export.selection import Selection
    from tracer.window import Window

__all__ = ["Intervals", "checked_series", "cpu_set", "near"]


class Intervals:
    """A recording's intervals, and what is meant of them: known once the first was read, since ranges count from it."""

    def __init__(
        self, intervals: Iterable[list[Window]], source: Source, time: TimeRange | None, selection: Selection
    ) -> None:
        self._iterator = iter(intervals)
        self._first = next(self._iterator, [])
        self.selection = selection
        if time is not None and self._first:
            from tracer.analysis.intervals import span

            first = span(self._first)
            start_ns, end_ns = time.monotonic_ns(source, first)
            # What was so before the recording belongs to its first interval.
            start_ns = start_ns if start_ns > first[0] else float("-inf")
            self.selection = replace(selection, start_ns=start_ns, end_ns=end_ns)

    def __iter__(self) -> Iterator[list[Window]]:
        yield self._first
        yield from self._iterator


def checked_series(series: str | None, header: Mapping[str, Any]) -> frozenset[str]:
    """Return the named series. Raises UsageError for one that the recording's header doesn't know."""
    names = frozenset(filter(None, (name.strip() for name in (series or "").split(","))))
    if series is not None and not names:
        raise UsageError("--series is empty.", hint="say for example --series softirq.delay, or leave it out")
    known = _recorded(header)
    for name in sorted(names):
        if known and name not in known:
            hint = f"recorded are {', '.join(sorted(one for one in known if '.' not in one))}"
            raise UsageError(f"no series {name!r} in this recording{near(name, known) or '.'}", hint=hint)
    return names


def _recorded(header: Mapping[str, Any]) -> set[str]:
    """Return the probes and tables that a header names; it may come from anyone."""
    known: set[str] = set()
    probes = header.get("probes")
    for probe in probes if isinstance(probes, list) else []:
        if isinstance(probe, dict) and isinstance(probe.get("name"), str):
            tables = probe.get("tables")
            names = [one.get("name") for one in tables if isinstance(one, dict)] if isinstance(tables, list) else []
            known |= {probe["name"], *(f"{probe['name']}.{name}" for name in names)}
    return known


def cpu_set(text: str | None, cpus: int) -> frozenset[int]:
    """Return the CPUs of a list such as ``0-3,8``; none for None. Raises UsageError.

    ``cpus``: how many the recording's node can have; 0 where that is not known.
    """
    if text is None:
        return frozenset()
    from tracer.kernel.cpus import parse_list

    try:
        found = frozenset(parse_list(text))
    except ValueError:
        found = frozenset()
    if not found:
        raise UsageError(f"--cpus {text!r} is no list of CPUs.", hint="for example --cpus 0-3,8")
    if cpus and min(found) >= cpus:
        raise UsageError(f"--cpus {text}: the recording has none of them.", hint=f"its node has {many(cpus, 'CPU')}")
    return found


def near(name: str, known: Collection[str]) -> str:
    """Return a question after the known name that is most like ``name``; "" where none is like it."""
    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
