"""What the agent asks of the one who stands by, and the message it goes as."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tracer.alerts.alert import Alert
from tracer.alerts.record import alert_from, alert_record
from tracer.errors import RecordingError

__all__ = ["Order"]


@dataclass(frozen=True)
class Order:
    """What is told: the alert, when the agent's interval ends (monotonic ns), how long it is, its probes, its pid."""

    alert: Alert
    due_ns: int
    interval_ns: int
    probes: tuple[str, ...]
    pid: int

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "alert": alert_record(self.alert),
            "due_ns": self.due_ns,
            "interval_ns": self.interval_ns,
            "probes": list(self.probes),
            "pid": self.pid,
        }

    @classmethod
    def read(cls, data: bytes) -> Order | None:
        """Return the order in a message; None when it holds none."""
        try:
            found = json.loads(data)
            return cls(
                alert_from(found["alert"]),
                int(found["due_ns"]),
                max(1, int(found["interval_ns"])),
                tuple(map(str, found["probes"])),
                int(found["pid"]),
            )
        except (ValueError, KeyError, TypeError, RecordingError):
            return None
