"""Lines on a descriptor: for people on a terminal, as JSON for programs."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from tracer.alerts.alert import Alert
from tracer.alerts.lines import json_line, people_lines
from tracer.errors import OutputError
from tracer.sinks.descriptors import Outlet, reopened

__all__ = ["JsonFile", "JsonLines", "Terminal", "open_json"]

_WAIT = 2.0
_FILE_MODE = 0o600  # it names the node's processes
_COLORLESS = ("dumb", "vt100", "vt102", "vt220")
_ASCII = str.maketrans({"≤": "<=", "µ": "u", "–": "-", "…": "...", "\u202f": ","})


class JsonFile:
    """JSON lines in a file, one ``alert_record`` each. A disk may block: give it to a Courier."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self._outlet = Outlet(descriptor)

    def send(self, alert: Alert) -> None:
        """Write, waiting a little for a slow reader. Raises OutputError."""
        data = self._data(alert)
        try:
            if data:
                self._outlet.write(data, _WAIT)
        except OSError as error:
            raise OutputError(f"alerts can't be written: {error.strerror or error}.") from None

    def close(self) -> None:
        """Close the descriptor; the stream it was made from stays open."""
        self._outlet.close()

    def _data(self, alert: Alert) -> bytes:
        return f"{json_line(alert)}\n".encode("ascii")


class JsonLines(JsonFile):
    """JSON lines to a pipe, a FIFO or a terminal; direct."""

    def fileno(self) -> int:
        """Return the descriptor that is written to."""
        return self._outlet.fileno()

    @property
    def trouble(self) -> str:
        """Why it could not be written to the last time."""
        return self._outlet.trouble

    def send_now(self, alert: Alert) -> bool:
        """Write at once; False when that would block or fails."""
        data = self._data(alert)
        return not data or self._outlet.write_now(data)


class Terminal(JsonLines):
    """Two lines per alert for people, in colour on a terminal that has it (https://no-color.org); direct.

    Alerts of rules on trial are not shown.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = stream or sys.stdout
        super().__init__("terminal", reopened(stream.fileno()))
        self._color = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in _COLORLESS
        self._encoding = stream.encoding or "ascii"

    def _data(self, alert: Alert) -> bytes:
        if alert.shadow:
            return b""
        text = "".join(f"{line}\n" for line in people_lines(alert, color=self._color))
        try:
            return text.encode(self._encoding)
        except (UnicodeEncodeError, LookupError):
            return text.translate(_ASCII).encode("ascii", "backslashreplace")


def open_json(path: str) -> JsonFile:
    """Return JSON lines to ``path``: "-" is standard output; a file is appended to.

    Raises OutputError, and the OSError of a standard output that is closed.
    """
    descriptor = reopened(sys.stdout.fileno()) if path == "-" else _opened(path)
    kind = JsonFile if Outlet(descriptor).waits else JsonLines
    return kind(f"json {path}", descriptor)


def _opened(path: str) -> int:
    try:
        # A FIFO opened for reading, too, neither waits for its reader nor ends with it.
        access = os.O_RDWR if os.path.exists(path) and not os.path.isfile(path) else os.O_WRONLY | os.O_CREAT
        return os.open(path, access | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, _FILE_MODE)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise OutputError(f"alerts can't be written to {path}: {why}.", hint="check the path and its folder") from None
