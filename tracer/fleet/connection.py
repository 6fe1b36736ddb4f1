"""One connection to the receiver: greets, reads, and is closed when it is wrong, slow or silent for too long."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Protocol

from tracer.errors import RecordingError
from tracer.fleet.intake import Intake, Message
from tracer.fleet.tls import Tls
from tracer.recording.greeting import Hello, answer, challenge, new_nonce

__all__ = ["Connection", "Hub"]

_GREETING_NS = 5_000_000_000
_FRAME_NS = 10_000_000_000
_IDLE_NS = 120_000_000_000
#: Whoever sends too much is not read for so long: what is left out costs little, and not nothing.
_PAUSE_SECONDS = 1.0


class Hub(Protocol):
    """What connections belong to."""

    token: str | None
    tls: ssl.SSLContext | None

    def opened(self, connection: Connection) -> bool:
        """Take it up; False, having complained, when there are too many."""

    def admits(self, connection: Connection, kind: int, now_ns: int) -> bool:
        """Return whether it may send one more frame of this kind."""

    def received(self, connection: Connection, message: Message, now_ns: int) -> None:
        """Take a message. Raises RecordingError to refuse it."""

    def closed(self, connection: Connection) -> None:
        """Forget it."""

    def holds(self, connection: Connection) -> None:
        """Note that what it ``held_before`` has changed to ``held``."""

    def complain(self, connection: Connection, kind: str, text: str) -> None:
        """Say what is wrong with it."""


class Connection(asyncio.Protocol):
    """``deadline_ns``: its hub closes it then. ``hello``: who speaks, once it is let in. ``peer``: its address."""

    def __init__(self, hub: Hub) -> None:
        nonce = new_nonce()
        self.peer = "?"
        self.deadline_ns = time.monotonic_ns() + _GREETING_NS
        self.hello: Hello | None = None
        self.held_before = 0
        self._hub = hub
        self._greeting = challenge(nonce)
        self._intake = Intake(nonce, hub.token, self._admits)
        self._left_out = 0
        self._complained = False
        self._tls = Tls(hub.tls) if hub.tls else None
        self._transport: asyncio.Transport | None = None

    @property
    def held(self) -> int:
        """Return how many bytes wait for the rest of their frame."""
        return self._intake.held

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if name else "?"
        if not self._hub.opened(self):
            self.abort()
        elif self._tls is None:
            self._send(self._greeting)

    def data_received(self, data: bytes) -> None:
        now_ns, held, messages, left_out = time.monotonic_ns(), self._intake.held, 0, self._left_out
        try:
            for message in self._intake.take(self._plain(data)):
                messages += 1
                self._hub.received(self, message, now_ns)
                if isinstance(message, Hello):
                    self.hello = message
                    self._send(answer())
        except RecordingError as error:
            self.refuse("a stream is damaged" if self.hello else "not let in", error.message)
            return
        self._hub.holds(self)
        self._expect(now_ns, begun=bool(messages) or not held)
        if self._left_out > left_out:
            self._slow_down()

    def connection_lost(self, exc: Exception | None) -> None:
        self._hub.closed(self)

    def refuse(self, kind: str, why: str) -> None:
        """Say why, here and, if it has not been welcome yet, there; then close."""
        self._hub.complain(self, kind, why)
        if self._transport is None:
            return
        if self.hello is None and (self._tls is None or self._tls.open):
            self._send(answer(why))
            self._transport.close()
        else:
            self._transport.abort()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _admits(self, kind: int) -> bool:
        admitted = self._hub.admits(self, kind, time.monotonic_ns())
        self._left_out += not admitted
        return admitted

    def _slow_down(self) -> None:
        if not self._complained:
            self._complained = True
            self._hub.complain(
                self, "too fast", "its node sends too many frames; the surplus is left out, and counted."
            )
        if self._transport is not None:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _plain(self, data: bytes) -> bytes:
        if self._tls is None:
            return data
        was_open = self._tls.open
        try:
            plain = self._tls.take(data)
        finally:
            self._write(self._tls.to_send())  # of the handshake, or why it failed
        if self._tls.open and not was_open:
            self._send(self._greeting)
        return plain

    def _send(self, data: bytes) -> None:
        if self._tls is not None:
            self._tls.wrap(data)
            data = self._tls.to_send()
        self._write(data)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and data:
            self._transport.write(data)

    def _expect(self, now_ns: int, begun: bool) -> None:
        """Set the deadline: of the greeting, of the frame that has begun, or of the next word."""
        if self.hello is None:
            return
        if not self.held:
            self.deadline_ns = now_ns + max(_IDLE_NS, 10 * self.hello.interval_ns)
        elif begun:
            self.deadline_ns = now_ns + _FRAME_NS
