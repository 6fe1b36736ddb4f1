"""Whose recording a report is of, and how that node is set up."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.units import duration, many, moment

__all__ = ["facts", "fingerprint"]

_MOST_FACTS = 600
_LONGEST = 300
_DEEPEST = 12


def facts(summary: Summary, source: Source, header: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return whose recording it is as (what, value), the most telling first."""
    seen = summary.intervals
    start, end = source.unix_ns(seen.start_ns), source.unix_ns(seen.end_ns)
    probes = header.get("probes")
    names = (
        [one["name"] for one in probes if isinstance(one, dict) and "name" in one] if isinstance(probes, list) else []
    )
    return [
        ("host", source.host or "unknown"),
        ("time", f"{moment(start)} to {moment(end)}" if start == start else "wall clock unknown"),
        ("length", f"{duration(seen.ns)}, {many(seen.count, 'interval')} of {duration(seen.typical_ns)}"),
        ("kernel", f"Linux {source.kernel} {source.architecture}".strip()),
        ("CPUs", str(source.cpus or "unknown")),
        ("boot", source.boot_id or "unknown"),
        ("recorded by", f"foreshock {source.version}"),
        ("command line", shlex.join(source.command) or "unknown"),
        ("labels", ", ".join(f"{name}={value}" for name, value in source.labels) or "none"),
        ("filters", ", ".join(source.traced) or "none: everything"),
        ("probes", ", ".join(map(str, names)) or "unknown"),
        ("stack sampling", f"{source.sample_hz:g} Hz on each CPU" if summary.seen("oncpu") else "not recorded"),
    ]


def fingerprint(header: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the node is and how it is set up, as (path, value)."""
    found = []
    for path, value in _leaves(header.get("fingerprint"), ()):
        found.append((".".join(path), str(value)[:_LONGEST]))
        if len(found) == _MOST_FACTS:
            break
    return found


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if len(path) == _DEEPEST:
        yield path, "…"
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)[:64]))
    elif isinstance(value, (list, tuple)) and any(isinstance(one, (Mapping, list, tuple)) for one in value):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(place)))
    else:
        yield path, ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
