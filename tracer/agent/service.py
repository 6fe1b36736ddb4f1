"""Tell systemd how we are: ready, alive, stopping. Source: sd_notify(3), sd_watchdog_enabled(3)."""

from __future__ import annotations

import contextlib
import os
import socket

__all__ = ["Service"]


class Service:
    """The service manager's socket; outside of a service, nothing. It never waits."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        path = os.environ.pop("NOTIFY_SOCKET", "")  # the loader and the black box's writer are not to speak for us
        if not path:
            return
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            made.connect("\0" + path[1:] if path.startswith("@") else path)
            self._socket = made
        except OSError:
            made.close()

    def say(self, **words: str) -> None:
        """Send assignments: ``say(READY="1", STATUS="…")``."""
        if self._socket:
            with contextlib.suppress(OSError):
                self._socket.send("\n".join(f"{name}={value}" for name, value in words.items()).encode())

    def close(self) -> None:
        """Close the socket."""
        if self._socket:
            self._socket.close()
            self._socket = None
