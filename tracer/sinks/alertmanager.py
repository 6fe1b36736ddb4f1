"""Alertmanager, by its API v2 (https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml).

An alert there is its set of labels: only what stays the same while it lasts is a label. It ends by itself at
``endsAt``, so what still fires is sent again in time, and ``endsAt`` reaches over two lost sendings.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from typing import Any

from tracer.alerts.alert import Alert, State
from tracer.alerts.engine import MOST_ALERTS
from tracer.alerts.lines import began_unix_ns, culprit_text, evidence_text
from tracer.escape import printable
from tracer.sinks.http import Poster
from tracer.sinks.sink import Refused

__all__ = ["AGAIN_SECONDS", "Alertmanager"]

AGAIN_SECONDS = 60.0
_LASTS_NS = int(3 * AGAIN_SECONDS * 1e9)
_PATH = "/api/v2/alerts"
_MOST = 2048  # characters of one label or annotation


class Alertmanager:
    """Slow: give it to a Courier, which has it repeat what fires. Alerts of rules on trial are not sent."""

    repeat_seconds = AGAIN_SECONDS

    def __init__(self, url: str, options: dict[str, str]) -> None:
        """Check the URL, without the API's path, and read what the options name. Raises UsageError."""
        self._poster = Poster(url, options, _PATH)
        self.name = f"alertmanager {self._poster.name}"
        self._firing: dict[str, Alert] = {}

    def send(self, alert: Alert) -> None:
        """Tell of a new state. Raises OutputError; Refused when the server will never take it."""
        if alert.shadow:
            return
        now_ns = time.time_ns()
        posted = [_posted(alert, now_ns)]
        before = self._firing.get(alert.id)
        if before is not None and _labels(before) != _labels(alert):
            # A severity that rose has made another alert of it: the lower one is over.
            posted.append(_posted(before, now_ns, over=True))
        # Kept first: if this sending is lost, the next repeats it.
        self._firing.pop(alert.id, None)
        if alert.state is State.FIRING:
            self._firing[alert.id] = alert
            if len(self._firing) > MOST_ALERTS:
                del self._firing[next(iter(self._firing))]
        try:
            self._poster.post(posted)
        except Refused:
            self._firing.pop(alert.id, None)
            raise

    def repeat(self) -> None:
        """Tell again what fires. Raises OutputError."""
        now_ns = time.time_ns()
        if self._firing:
            self._poster.post([_posted(alert, now_ns) for alert in self._firing.values()])

    def close(self) -> None:
        """Nothing is open between alerts; what fires ends there by itself."""


def _posted(alert: Alert, now_ns: int, *, over: bool = False) -> dict[str, Any]:
    """Return a ``postableAlert``. It must not end before it starts, whatever the node's clock says."""
    over = over or alert.state is State.RESOLVED
    ends_ns = now_ns if over else now_ns + _LASTS_NS
    return {
        "labels": _labels(alert),
        "annotations": _annotations(alert),
        "startsAt": _time(min(began_unix_ns(alert), ends_ns)),
        "endsAt": _time(ends_ns),
    }


def _labels(alert: Alert) -> dict[str, str]:
    subject = alert.condition.subject
    return _texts(
        {
            "alertname": f"foreshock: {alert.title}",
            "node": alert.node,
            "severity": alert.severity.name.lower(),
            "rule": alert.rule,
            "subject_kind": subject.kind,
            "subject": subject.name,
        }
    )


def _annotations(alert: Alert) -> dict[str, str]:
    condition = alert.condition
    return _texts(
        {
            "summary": f"{alert.node}: {alert.headline}",
            "culprit": culprit_text(condition.culprit),
            "stack": " < ".join(condition.culprit.stack) if condition.culprit else "",
            "evidence": evidence_text(alert.evidence),
            "countdown": condition.countdown.told(alert.at_ns) if condition.countdown else "",
            "settings": condition.countdown.setting if condition.countdown else "",
            "next": alert.next,
            "numbers": json.dumps(dict(condition.numbers)) if condition.numbers else "",
            "missed": json.dumps(dict(alert.quality)) if alert.quality else "",
            "id": alert.id,
            "boot_id": alert.boot_id,
            "source": alert.source,
        }
    )


def _texts(texts: dict[str, str]) -> dict[str, str]:
    """Return what isn't empty, as printable text: an empty label is none."""
    return {name: printable(text[:_MOST]) for name, text in texts.items() if text}


def _time(unix_ns: int) -> str:
    # RFC 3339, and a year that datetime and Go's time know.
    seconds = min(max(unix_ns / 1e9, 0.0), 253_402_300_799.0)
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
