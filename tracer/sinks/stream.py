"""The stream to a receiver on another host (``foreshock fleet serve``): alerts, windows, and a sign of life.

Nothing here waits: frames go into the kernel's buffer as far as it takes them, alerts that it doesn't take are kept,
windows are dropped and counted. One thread may use a stream; connecting happens in another.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracer.alerts.alert import Alert
from tracer.alerts.engine import Identity
from tracer.alerts.record import alert_record
from tracer.errors import ForeshockError
from tracer.escape import printable
from tracer.recording.codec import FrameEncoder
from tracer.recording.frames import Kind, pack_frame
from tracer.recording.greeting import Hello
from tracer.sinks.connector import Connector, tls_context
from tracer.sinks.report import to_stderr
from tracer.sinks.token import read_token
from tracer.window import Window

__all__ = ["Stream"]

_MOST_PENDING = 256 << 10  # bytes; one more frame may be on top
_MOST_WAITING = 64
#: A connection that broke may have taken the last alerts with it: those of so many seconds are sent again.
_AGAIN_SECONDS = 60.0
_MOST_AGAIN = 16
_GOODBYE_SECONDS = 1.0
_MOST_STACK = 600
_MOST_FUNCTION = 200  # characters: a receiver refuses alerts of 128 KiB
_WOULD_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Stream:
    """A direct sink, and where windows go. Options: ``token-file``, ``tls``, ``tls-ca``, ``tls-cert``, ``tls-key``.

    Make it in the process that uses it: its thread does not survive a fork.

    ``dropped``: windows and alerts that no connection took in time.
    """

    def __init__(
        self,
        host: str,
        port: int,
        identity: Identity,
        interval_ns: int,
        options: dict[str, str],
        report: Callable[[str], None] = to_stderr,
    ) -> None:
        """Begin to connect. Raises UsageError when a token or a certificate can't be read."""
        token = read_token(options["token-file"]) if "token-file" in options else None
        tls = tls_context(options)
        who = printable(identity.node), identity.boot_id, identity.source
        hello = Hello(*who, interval_ns, machine=identity.machine)
        self.name = f"stream {host}:{port}"
        self.dropped = 0
        self._header: Mapping[str, Any] | None = None
        self._waiting: deque[Alert] = deque()
        self._sent: deque[tuple[float, Alert]] = deque(maxlen=_MOST_AGAIN)
        self._pending = bytearray()
        self._encoder = FrameEncoder()
        self._socket: socket.socket | None = None
        # Of plain sockets; TLS takes no flags, and goes by the socket's own setting.
        self._now = 0 if tls else socket.MSG_DONTWAIT
        self._connector = Connector((host, port), hello, token, tls, report)
        self._connector.ask(0)

    def fileno(self) -> int:
        """Return the connection's descriptor; -1 while there is none."""
        return self._socket.fileno() if self._socket else -1

    def introduce(self, header: Mapping[str, Any]) -> None:
        """Send a recording's header now and at the start of every later connection."""
        self._header = header
        if self._connected():
            self._pending += self._encoder.header(header)
            self._push()

    def send_now(self, alert: Alert) -> bool:
        """Send at once. False when that would block or nothing is connected: it is kept, and ``beat`` sends it then."""
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(alert)
        self._pump()
        return not self._waiting

    def send(self, alert: Alert) -> None:
        """Send as ``send_now`` does."""
        self.send_now(alert)

    def send_windows(self, windows: Sequence[Window]) -> bool:
        """Send one interval; False when it was dropped, and counted, for want of a connection or of room.

        Raises OutputError when no receiver would take so large an interval.
        """
        if not self._connected() or self._waits():
            self.dropped += 1
            return False
        self._pending += self._encoder.windows(windows)
        self._pump()
        return True

    def beat(self) -> None:
        """Give a sign of life, and send what waits: once an interval, also when there are no windows."""
        if self._connected() and not self._waits():
            self._pending += pack_frame(Kind.BEAT, {"dropped": self.dropped})
        self._pump()

    def close(self) -> None:
        """Say goodbye, waiting a second at most for what is still to be sent: the receiver expects nothing more."""
        give_up = time.monotonic() + _GOODBYE_SECONDS
        self._connector.close(_GOODBYE_SECONDS)
        if self._connected():
            self._pump()
            self._pending += self._encoder.end()
            while not self._push() and self._socket and (left := give_up - time.monotonic()) > 0:
                waiting = select.poll()
                waiting.register(self._socket, select.POLLOUT)
                waiting.poll(left * 1000)
            if self._socket:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_WR)
        for made in (self._socket, self._connector.take()):
            if made is not None:
                made.close()
        self._socket = None

    def _pump(self) -> None:
        """Send what waits as far as it goes."""
        while self._connected() and self._waiting and self._pack(self._waiting[0]):
            self._waiting.popleft()
        self._push()

    def _pack(self, alert: Alert) -> bool:
        """Put ``alert`` behind what is to be sent; False where there is no connection, or no room."""
        if not self._socket or self._waits():
            return False
        try:
            self._pending += pack_frame(Kind.ALERT, _short(alert_record(alert)))
            self._sent.append((time.monotonic(), alert))
        except (ValueError, TypeError, OverflowError):
            self.dropped += 1  # one that no receiver would read
        return True

    def _waits(self) -> bool:
        return len(self._pending) > _MOST_PENDING

    def _connected(self) -> bool:
        """Take over a connection that was made, notice one that was closed; return whether there is one."""
        if self._socket is None:
            self._socket = self._connector.take()
            if self._socket is not None:
                self._begin()
        elif self._hung_up():
            self._lose()
        return self._socket is not None

    def _begin(self) -> None:
        self._encoder, self._pending = FrameEncoder(), bytearray()
        if self._header is not None:
            with contextlib.suppress(ForeshockError):
                self._pending += self._encoder.header(self._header)
        since = time.monotonic() - _AGAIN_SECONDS
        self._waiting.extendleft(alert for sent, alert in reversed(self._sent) if sent >= since)
        self._sent.clear()

    def _hung_up(self) -> bool:
        # A receiver says nothing after its greeting. Without asking, the first frame after it left would be lost.
        try:
            return self._socket is not None and not self._socket.recv(256, self._now)
        except _WOULD_WAIT:
            return False
        except OSError:
            return True

    def _push(self) -> bool:
        while self._pending and self._socket:
            try:
                sent = self._socket.send(self._pending, self._now)
            except _WOULD_WAIT:
                return False
            except OSError:
                self._lose()
                return False
            del self._pending[:sent]
            # The kernel holds small data back while the card has not told that the earlier is sent (tcp_autocorking),
            # which it never does if its interrupts are the stuck CPU's. Asking for no delay, again, sends it at once.
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket is not None

    def _lose(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._pending.clear()
        self._connector.ask(self.dropped)


def _short(record: dict[str, Any]) -> dict[str, Any]:
    """Return an alert's record with long functions, as C++ has them, and long stacks cut."""
    if culprit := record.get("culprit"):
        culprit["stack"] = [function[:_MOST_FUNCTION] for function in culprit["stack"]]
    if evidence := record.get("evidence"):
        evidence["stacks"] = [stack[:_MOST_STACK] for stack in evidence["stacks"]]
    return record
