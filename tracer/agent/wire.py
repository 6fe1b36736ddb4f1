"""What a sentinel and the agent say to each other: whole messages through a socket that neither ever waits for."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import msgpack

from tracer.alerts.alert import Alert
from tracer.alerts.record import alert_from, alert_record
from tracer.errors import RecordingError

__all__ = ["Wire"]

_PACKET = 1 << 18


class Wire:
    """One end; ``pair`` makes both. It is a direct sink, too: alerts go to the other end.

    Messages are ``(kind, value)``: ``("alert", Alert)``, ``("ready", [what it has to do without])``,
    ``("note", text)``, ``("bye", None)``.
    """

    name = "agent"
    trouble = ""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        end.setblocking(False)

    @classmethod
    def pair(cls) -> tuple[Wire, Wire]:
        """Return two connected ends."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), cls(theirs)

    def fileno(self) -> int:
        """Return the descriptor, readable when there is a message or the other end is gone."""
        return self._socket.fileno()

    def say(self, kind: str, value: Any = None) -> bool:
        """Send a message at once; False when that would block or nobody reads."""
        try:
            self._socket.send(msgpack.packb([kind, value]))
        except OSError:
            return False
        return True

    def send_now(self, alert: Alert) -> bool:
        """Send an alert as ``say`` does."""
        return self.say("alert", alert_record(alert))

    def send(self, alert: Alert) -> None:
        """Send an alert, or not: see ``send_now``."""
        self.send_now(alert)

    def received(self) -> Iterator[tuple[str, Any]]:
        """Yield the messages that are there. Raises EOFError when the other end is gone."""
        while True:
            try:
                data = self._socket.recv(_PACKET)
            except BlockingIOError:
                return
            except ConnectionResetError:
                continue  # the other end left something unread; what it said comes behind
            except ConnectionError:
                raise EOFError from None
            if not data:
                raise EOFError
            # What a process wrote that lost its mind is not worth ours.
            with contextlib.suppress(RecordingError, TypeError, ValueError, msgpack.UnpackException):
                kind, value = msgpack.unpackb(data)
                yield kind, alert_from(value) if kind == "alert" else value

    def close(self) -> None:
        """Close this end."""
        self._socket.close()
