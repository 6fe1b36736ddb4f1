"""Alerts as plain maps, for msgpack and JSON: the one copy of their form outside this process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tracer.alerts.alert import Alert, Condition, Countdown, Culprit, Evidence, Severity, State, Subject
from tracer.errors import RecordingError

__all__ = ["OCCASION", "alert_from", "alert_record", "occasion"]

#: Of a recording's header: the alert that it was made for.
OCCASION = "alert"

_MOST_TEXT = 4096
_MOST_ITEMS = 128


def alert_record(alert: Alert) -> dict[str, Any]:
    """Return ``alert`` as a map of texts, numbers and lists; bytes that are no UTF-8 become U+FFFD."""
    condition, culprit, countdown = alert.condition, alert.condition.culprit, alert.condition.countdown
    record: dict[str, Any] = {
        "id": alert.id,
        "rule": alert.rule,
        "title": alert.title,
        "state": alert.state.value,
        "severity": alert.severity.name.lower(),
        "subject": {"kind": condition.subject.kind, "name": _text(condition.subject.name)},
        "summary": _text(condition.summary),
        "headline": _text(alert.headline),
        "next": _text(alert.next),
        "node": _text(alert.node),
        "boot_id": alert.boot_id,
        "sequence": alert.sequence,
        "since_ns": condition.since_ns,
        "began_ns": alert.began_ns,
        "at_ns": alert.at_ns,
        "unix_ns": alert.unix_ns,
        "source": alert.source,
        "shadow": alert.shadow,
        "numbers": {name: float(value) for name, value in condition.numbers.items() if math.isfinite(value)},
        "quality": dict(alert.quality),
    }
    if culprit:
        record["culprit"] = {
            "task": _text(culprit.task),
            "context": _text(culprit.context),
            "stack": [_text(frame) for frame in culprit.stack],
            "module": _text(culprit.module),
        }
    if alert.evidence:
        record["evidence"] = {
            "recording": _text(alert.evidence.recording),
            "report": _text(alert.evidence.report),
            "stacks": [_text(stack) for stack in alert.evidence.stacks],
        }
    if countdown:
        record["countdown"] = {
            "detector": countdown.detector,
            "latest_ns": countdown.latest_ns,
            "panics": countdown.panics,
            "setting": countdown.setting,
        }
    return record


def alert_from(record: Any) -> Alert:
    """Return the alert of a map that may come from anyone. Raises RecordingError when it is none."""
    try:
        return _alert(record)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RecordingError("an alert is damaged.") from None


def occasion(header: Mapping[str, Any]) -> Alert | None:
    """Return the alert that a recording was made for, as its header says; None where there is none."""
    try:
        return alert_from(header[OCCASION]) if OCCASION in header else None
    except RecordingError:
        return None


def _alert(record: Mapping[str, Any]) -> Alert:
    culprit, countdown, evidence = record.get("culprit"), record.get("countdown"), record.get("evidence")
    condition = Condition(
        subject=Subject(_read(record["subject"]["kind"]), _read(record["subject"]["name"])),
        severity=Severity[_read(record["severity"]).upper()],
        summary=_read(record["summary"]),
        since_ns=_integer(record["since_ns"]),
        numbers={_read(name): float(value) for name, value in _few(record["numbers"]).items()},
        culprit=Culprit(
            task=_read(culprit["task"]),
            context=_read(culprit["context"]),
            stack=tuple(_read(frame) for frame in _few(list(culprit["stack"]))),
            module=_read(culprit["module"]),
        )
        if culprit
        else None,
        countdown=Countdown(
            detector=_read(countdown["detector"]),
            latest_ns=_integer(countdown["latest_ns"]),
            panics=bool(countdown["panics"]),
            setting=_read(countdown["setting"]),
        )
        if countdown
        else None,
    )
    return Alert(
        id=_read(record["id"]),
        rule=_read(record["rule"]),
        title=_read(record["title"]),
        state=State(record["state"]),
        condition=condition,
        next=_read(record["next"]),
        node=_read(record["node"]),
        boot_id=_read(record["boot_id"]),
        sequence=_integer(record["sequence"]),
        began_ns=_integer(record["began_ns"]),
        at_ns=_integer(record["at_ns"]),
        unix_ns=_integer(record["unix_ns"]),
        source=_read(record["source"]),
        shadow=bool(record["shadow"]),
        quality={_read(name): _integer(value) for name, value in _few(record["quality"]).items()},
        evidence=Evidence(
            recording=_read(evidence["recording"]),
            report=_read(evidence["report"]),
            stacks=tuple(_read(stack) for stack in _few(list(evidence["stacks"]))),
        )
        if evidence
        else None,
    )


def _text(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _read(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise ValueError(value)
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or not -(1 << 63) <= value < 1 << 64:
        raise ValueError(value)
    return int(value)


def _few(items: Any) -> Any:
    if len(items) > _MOST_ITEMS:
        raise ValueError(len(items))
    return items
