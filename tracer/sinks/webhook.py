"""A webhook: each alert is POSTed to one URL as JSON, the same map as a line of the JSON sink."""

from __future__ import annotations

from tracer.alerts.alert import Alert
from tracer.alerts.record import alert_record
from tracer.sinks.http import Poster

__all__ = ["Webhook"]


class Webhook:
    """Slow: give it to a Courier. Alerts of rules on trial are not sent."""

    def __init__(self, url: str, options: dict[str, str]) -> None:
        """Check the URL and read what the options name. Raises UsageError."""
        self._poster = Poster(url, options)
        self.name = f"webhook {self._poster.name}"

    def send(self, alert: Alert) -> None:
        """POST the alert. Raises OutputError; Refused when the server will never take it."""
        if not alert.shadow:
            self._poster.post(alert_record(alert))

    def close(self) -> None:
        """Nothing is open between alerts."""
