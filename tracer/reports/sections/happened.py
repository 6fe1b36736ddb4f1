"""What has a moment, one after the other: alerts as they would have been told, and the worst single events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracer.analysis.source import Source
from tracer.reports.sections._section import Section, more
from tracer.units import duration, moment

__all__ = ["happened"]

#: Alerts and single events that are told, the longest first.
_MOST = 16
_KINDS = {"runqueue.worst": "wait", "softirq.worst": "softirq", "cpustall.stalls": "stall"}


def happened(marks: Sequence[Mapping[str, Any]], source: Source) -> Section | None:
    """Return the ``marks`` of ``reports.html.events``, alerts first."""
    if not marks:
        return None
    ranked = sorted(marks, key=lambda one: ("alert" not in one, -_length_ns(one)))
    rest = more(ranked[_MOST:], "shorter one")
    return Section("WHAT HAPPENED", (), (), rest, notes=[_told(one, source) for one in ranked[:_MOST]])


def _told(one: Mapping[str, Any], source: Source) -> str:
    alert = one.get("alert")
    kind = f"alert ({alert['severity']})" if alert else _KINDS.get(one["kind"], one["kind"])
    after = f" Next: {alert['next']}" if alert else ""
    when = moment(source.unix_ns(one["end_ns"]), date=False)
    least = "≥ " if alert and not one["over"] else ""
    return f"{when}  {kind}, {least}{duration(_length_ns(one))}: {one['text']}{after}"


def _length_ns(one: Mapping[str, Any]) -> int:
    return max(0, int(one["end_ns"]) - int(one["start_ns"]))
