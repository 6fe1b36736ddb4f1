"""An alert as lines of text: two for people, one of JSON for programs. Whatever a name holds, nothing else gets in."""

from __future__ import annotations

import json

from tracer import units
from tracer.alerts.alert import Alert, Culprit, Evidence, Severity, State
from tracer.alerts.record import alert_record
from tracer.escape import printable

__all__ = ["began_unix_ns", "culprit_text", "evidence_text", "json_line", "people_lines"]

_FRAMES = 4
_STACKS = 3
_MOST = 600  # characters of one text
_COLORS = {Severity.PAGE: "1;31", Severity.WARNING: "33", Severity.INFO: "1"}
_GREEN = "32"


def people_lines(alert: Alert, *, color: bool = False) -> list[str]:
    """Return the alert as two lines: when, how bad, where and what; who did it and what to do, or when it began.

    What was recorded because of it is a third one.

    ``2026-11-30 02:11:05 UTC  PAGE  cu39: CPU 3 is stuck for 5.2 s; panic in ≤ 16 s``
    """
    resolved = alert.state is State.RESOLVED
    word = "RESOLVED" if resolved else alert.severity.name
    code = _GREEN if resolved else _COLORS[alert.severity]
    what = alert.condition.summary if resolved else alert.headline
    shown = f"\x1b[{code}m{word}\x1b[0m" if color else word
    mark = " (shadow)" if alert.shadow else ""
    began = f"it began {units.duration(max(0, alert.at_ns - alert.began_ns))} ago"
    then = began if resolved else f"next: {_safe(alert.next)}"
    parts = [culprit_text(alert.condition.culprit), then, _missed(alert)]
    lines = [
        f"{units.moment(alert.unix_ns)}  {shown}{mark}  {_safe(alert.node)}: {_safe(what)}",
        "    " + "; ".join(part for part in parts if part),
    ]
    return [*lines, f"    {evidence_text(alert.evidence)}"] if alert.evidence else lines


def json_line(alert: Alert) -> str:
    """Return ``alert_record`` as one line of ASCII without control characters and without the line's end."""
    # json escapes all but DEL, which some terminals act on.
    return json.dumps(alert_record(alert), separators=(",", ":"), allow_nan=False).replace("\x7f", "\\u007f")


def culprit_text(culprit: Culprit | None) -> str:
    """Return who did it, printable, in one phrase; "" when nobody knows."""
    if culprit is None:
        return ""
    frames = " < ".join(_safe(frame) for frame in culprit.stack[:_FRAMES])
    more = " < …" if len(culprit.stack) > _FRAMES else ""
    module = f"[{_safe(culprit.module)}]" if culprit.module else ""
    where = " ".join(part for part in (f"{frames}{more}", module) if part)
    said = ", ".join(part for part in (_safe(culprit.task), _safe(culprit.context)) if part)
    return " in ".join(part for part in (f"by {said}" if said else "", where) if part)


def evidence_text(evidence: Evidence | None) -> str:
    """Return what was recorded, printable, in one phrase; "" for nothing."""
    if evidence is None:
        return ""
    stacks = map(_safe, evidence.stacks[:_STACKS])
    return "; ".join((f"recorded: {_safe(evidence.report or evidence.recording)}", *stacks))


def began_unix_ns(alert: Alert) -> int:
    """Return when it began, by the node's own clock, in ns of CLOCK_REALTIME."""
    return alert.unix_ns - max(0, alert.at_ns - alert.began_ns)


def _missed(alert: Alert) -> str:
    missed = ", ".join(f"{_safe(reason)} {number}" for reason, number in alert.quality.items())
    return f"missed: {missed}" if missed else ""


def _safe(text: str) -> str:
    return printable(units.clip(text, _MOST) if len(text) > _MOST else text)
