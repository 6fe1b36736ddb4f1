"""The systemd journal, by its native protocol: one datagram per alert (https://systemd.io/JOURNAL_NATIVE_PROTOCOL)."""

from __future__ import annotations

import errno
import select
import socket
import struct

from tracer.alerts.alert import Alert, Severity, State
from tracer.alerts.lines import culprit_text, people_lines
from tracer.alerts.record import alert_record
from tracer.errors import OutputError

__all__ = ["MESSAGE_ID", "SOCKET", "Journal"]

SOCKET = "/run/systemd/journal/socket"
#: Of every foreshock alert: journalctl MESSAGE_ID=…
MESSAGE_ID = "e8b54f5e1a8645819c44cc429caa6aa8"
_WAIT_MS = 2000
# syslog(3): crit, warning, notice; what is over is informational.
_PRIORITIES = {Severity.PAGE: 2, Severity.WARNING: 4, Severity.INFO: 5}
_OVER = 6


class Journal:
    """A connected datagram socket; direct. Alerts of rules on trial are not sent."""

    def __init__(self, path: str = SOCKET) -> None:
        """Connect. Raises OutputError when there is no journal."""
        self.name = "journald"
        self.trouble = ""
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise OutputError(f"there is no journal at {path}: {error.strerror}.", hint="is this systemd?") from None

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    def send_now(self, alert: Alert) -> bool:
        """Send at once; False when that would block or fails."""
        self.trouble = ""
        try:
            self._send(alert)
        except BlockingIOError:
            return False
        except OSError as error:
            self.trouble = (error.strerror or str(error)).lower()
            return False
        return True

    def send(self, alert: Alert) -> None:
        """Send, waiting a little for a busy journal. Raises OutputError."""
        try:
            if not self.send_now(alert):
                waiting = select.poll()
                waiting.register(self._socket, select.POLLOUT)
                waiting.poll(_WAIT_MS)
                self._send(alert)
        except OSError as error:
            raise OutputError(
                f"the journal takes no alerts: {error.strerror}.", hint="systemctl status systemd-journald"
            ) from None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _send(self, alert: Alert) -> None:
        if alert.shadow:
            return
        data = _datagram(alert)
        try:
            self._socket.send(data)
        except OSError as error:
            if error.errno not in (errno.ECONNREFUSED, errno.ENOTCONN, errno.ECONNRESET):
                raise
            # A restarted journal has another socket by the same name.
            self._socket.connect(self._path)
            self._socket.send(data)


def _datagram(alert: Alert) -> bytes:
    record = alert_record(alert)
    culprit = alert.condition.culprit
    fields = {
        "MESSAGE": " ".join(line.strip() for line in people_lines(alert)),
        "MESSAGE_ID": MESSAGE_ID,
        "PRIORITY": str(_OVER if alert.state is State.RESOLVED else _PRIORITIES[alert.severity]),
        "SYSLOG_IDENTIFIER": "foreshock",
        "FORESHOCK_SUBJECT": f"{alert.condition.subject.kind} {record['subject']['name']}".strip(),
        "FORESHOCK_CULPRIT": culprit_text(culprit),
        "FORESHOCK_STACK": "\n".join(culprit.stack) if culprit else "",
        "FORESHOCK_REPORT": (alert.evidence.report or alert.evidence.recording) if alert.evidence else "",
        "FORESHOCK_EVIDENCE": "\n".join(alert.evidence.stacks) if alert.evidence else "",
        "FORESHOCK_COUNTDOWN": alert.condition.countdown.told(alert.at_ns) if alert.condition.countdown else "",
    }
    for name in ("id", "rule", "state", "severity", "summary", "next", "node", "boot_id", "sequence", "source"):
        fields[f"FORESHOCK_{name.upper()}"] = str(record[name])
    fields |= {f"FORESHOCK_{name.upper()}": repr(value) for name, value in record["numbers"].items() if _plain(name)}
    return b"".join(_field(name, value) for name, value in fields.items() if value)


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    if b"\n" not in data:
        return b"%s=%s\n" % (name.encode(), data)
    return b"%s\n%s%s\n" % (name.encode(), struct.pack("<Q", len(data)), data)


def _plain(name: str) -> bool:
    """Return whether a number's name makes a field's: the journal ignores others, and the whole of it is capped."""
    return name.isascii() and name.isidentifier() and len(name) <= 50
