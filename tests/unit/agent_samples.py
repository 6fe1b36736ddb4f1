"""Alerts for tests, and sinks that take what they are told to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracer.alerts.alert import Alert, Condition, Culprit, Severity, State, Subject, alert_id

__all__ = ["SECOND", "FakeSink", "an_alert"]

SECOND = 1_000_000_000


def an_alert(
    cpu: int = 3, *, severity: Severity = Severity.WARNING, stack: tuple[str, ...] | None = None, **more: Any
) -> Alert:
    """Return an alert about a CPU; ``stack`` None means that no culprit is known."""
    subject = Subject("cpu", str(cpu))
    culprit = None if stack is None else Culprit("spin[7]", "softirq TIMER", stack)
    alert = Alert(
        id=alert_id("b007", "stuck", subject, 5 * SECOND),
        rule="stuck",
        title="stuck CPU",
        state=State.FIRING,
        condition=Condition(subject, severity, f"CPU {cpu} is stuck", 5 * SECOND, culprit=culprit),
        next="look at it",
        node="cu39",
        boot_id="b007",
        sequence=1,
        began_ns=5 * SECOND,
        at_ns=6 * SECOND,
        unix_ns=1_700_000_006 * SECOND,
    )
    return replace(alert, **more)


class FakeSink:
    """A direct sink that takes alerts while ``takes`` says so."""

    def __init__(self, name: str = "fake", *, takes: bool = True) -> None:
        self.name, self.takes = name, takes
        self.trouble = ""
        self.got: list[Alert] = []

    def fileno(self) -> int:
        return -1

    def send_now(self, alert: Alert) -> bool:
        if self.takes:
            self.got.append(alert)
        return self.takes

    def send(self, alert: Alert) -> None:
        self.send_now(alert)

    def close(self) -> None:
        return None
