"""The kernel's own logs, only when asked for: /dev/kmsg, and /dev/pmsg0, which survives a panic where pstore has it.

A line in /dev/kmsg goes to every console, and a slow serial console may itself keep a CPU long enough to trigger the
panic that is warned of. So there is one line of each severity in ``_PAUSE`` seconds at most, and its level is below
what a console shows that was booted with ``quiet``.
"""

from __future__ import annotations

import os
import time

from tracer.alerts.alert import Alert, Severity
from tracer.alerts.lines import people_lines
from tracer.errors import OutputError

__all__ = ["KernelLog"]

_PAUSE = 10.0
_MOST = 900  # the kernel's line holds 1024, LOG_LINE_MAX
_NOTICE = "<13>"  # LOG_USER | LOG_NOTICE


class KernelLog:
    """Slow: give it to a Courier. Alerts of rules on trial are not written; those above the rate are counted.

    ``dropped``: how many were above the rate; the next line says so.
    """

    def __init__(self, name: str, path: str, prefix: str = "") -> None:
        """Open ``path``. Raises OutputError."""
        self.name = name
        self.dropped = 0
        self._prefix = prefix
        self._next: dict[Severity, float] = {}
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise OutputError(f"{path} can't be opened: {error.strerror}.", hint=f"leave out the sink {name}") from None

    @classmethod
    def kmsg(cls, path: str = "/dev/kmsg") -> KernelLog:
        """Return the kernel's log."""
        return cls("kmsg", path, _NOTICE)

    @classmethod
    def pmsg(cls, path: str = "/dev/pmsg0") -> KernelLog:
        """Return the log that a panic leaves readable in /sys/fs/pstore."""
        return cls("pmsg", path)

    def send(self, alert: Alert) -> None:
        """Write one line, unless there was one just now. Raises OutputError."""
        if alert.shadow:
            return
        if time.monotonic() < self._next.get(alert.severity, 0.0):
            self.dropped += 1
            return
        more = f" ({self.dropped} alerts before it not written)" if self.dropped else ""
        line = " ".join(part.strip() for part in people_lines(alert))
        text = f"{self._prefix}foreshock: {line}".encode("ascii", "backslashreplace")[:_MOST]
        try:
            os.write(self._descriptor, b"%s%s\n" % (text, more.encode()))
        except OSError as error:
            raise OutputError(f"{self.name} takes no line: {error.strerror}.") from None
        self._next[alert.severity] = time.monotonic() + _PAUSE
        self.dropped = 0

    def close(self) -> None:
        """Close the device."""
        os.close(self._descriptor)
