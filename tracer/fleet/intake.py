"""What arrives over one connection, from bytes to values: no sockets, so that any bytes can be tried on it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tracer.alerts.alert import Alert
from tracer.alerts.record import alert_from
from tracer.errors import RecordingError
from tracer.recording.codec import FrameDecoder
from tracer.recording.frames import HEAD_BYTES, PREAMBLE, WHOLE, Frame, Kind, check_preamble, read_frame, read_head
from tracer.recording.greeting import GREETING_BYTES, Hello
from tracer.recording.payload import structure_size, unpack_payload
from tracer.window import Window

__all__ = ["Beat", "Goodbye", "Header", "Intake", "Interval", "Message"]

# Of the maps that describe new kinds of rows, which a decoder keeps in memory, per connection; a node's take 10 KiB.
_MOST_DESCRIBED = 256 << 10
#: So much of a payload is read: of an interval what describes it, 3 KiB of most; the whole of most alerts is as long.
_FIRST: dict[int, int] = {Kind.WINDOWS: 128 << 10, Kind.ALERT: 128 << 10}


def _all(kind: int) -> bool:
    return True


@dataclass(frozen=True)
class Header:
    """A recording's header: what the node is."""

    values: dict[str, Any]


@dataclass(frozen=True)
class Interval:
    """One interval, as the frame that it came in: small, and decoded only when somebody asks.

    ``decoder``: as it was before this frame.
    """

    frame: bytes
    decoder: FrameDecoder

    def windows(self) -> list[Window]:
        """Return the windows. Raises RecordingError where the frame is damaged inside."""
        frame = read_frame(io.BytesIO(self.frame).read)
        return self.decoder.copy().windows(frame) if frame else []


@dataclass(frozen=True)
class Beat:
    """A sign of life. ``dropped``: what the sender has dropped so far for want of room or of a connection."""

    dropped: int


@dataclass(frozen=True)
class Goodbye:
    """The sender ends on purpose: its silence means nothing from now on."""


Message: TypeAlias = Hello | Header | Interval | Alert | Beat | Goodbye


class Intake:
    """Takes a connection's bytes. ``hello``: who speaks, once that is known and ``token`` is theirs, too.

    ``admits`` says of each later frame's kind whether it may be read: one that may not is left out, unread.
    """

    def __init__(self, nonce: str, token: str | None, admits: Callable[[int], bool] = _all) -> None:
        self.hello: Hello | None = None
        self._nonce = nonce
        self._token = token
        self._admits = admits
        self._buffer = bytearray()
        self._opened = False
        self._over = False
        self._decoder = FrameDecoder()
        self._described = 0

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._buffer)

    def take(self, data: bytes) -> Iterator[Message]:
        """Yield what ``data`` completes; go through all of it before the next. Raises RecordingError."""
        self._buffer += data
        if not self._opened:
            if len(self._buffer) < len(PREAMBLE):
                return
            check_preamble(bytes(self._buffer[: len(PREAMBLE)]))
            del self._buffer[: len(PREAMBLE)]
            self._opened = True
        while (found := self._next()) is not None:
            raw, kind = found
            if self.hello is not None and kind != Kind.END and not self._admits(kind):
                continue
            # What is longer has an incomplete map, and is refused.
            first = _FIRST.get(kind, WHOLE)
            frame = read_frame(io.BytesIO(raw).read, first=first)
            if frame is not None and (message := self._read(frame, raw)) is not None:
                yield message

    def _next(self) -> tuple[bytes, int] | None:
        """Return the next whole frame's bytes and its kind, and forget them."""
        if len(self._buffer) < HEAD_BYTES:
            return None
        length, kind = read_head(bytes(self._buffer[:HEAD_BYTES]))
        size = HEAD_BYTES + length
        if self.hello is None and size > GREETING_BYTES:
            raise RecordingError(f"a greeting of {size} bytes.")
        if len(self._buffer) < size:
            return None
        raw = bytes(self._buffer[:size])
        del self._buffer[:size]
        return raw, kind

    def _read(self, frame: Frame, raw: bytes) -> Message | None:
        if self.hello is None:
            self.hello = Hello.read(frame, self._nonce, self._token)
            return self.hello
        if self._over:
            raise RecordingError("it goes on after its goodbye.")
        match frame.kind:
            case Kind.HEADER:
                return Header(self._decoder.header(frame))
            case Kind.WINDOWS:
                return self._interval(frame, raw)
            case Kind.ALERT:
                return self._alert(frame)
            case Kind.BEAT:
                dropped = unpack_payload(frame.payload)[0].get("dropped", 0)
                return Beat(dropped if type(dropped) is int and dropped >= 0 else 0)
            case Kind.END:
                self._decoder.end(frame)
                self._over = True
                return Goodbye()
            case Kind.HELLO:
                raise RecordingError("a second greeting.")
        return None  # of a later version

    def _interval(self, frame: Frame, raw: bytes) -> Interval:
        before = self._decoder.copy()
        self._decoder.skip(frame)
        if self._decoder.layouts is not before.layouts:
            self._described += structure_size(frame.payload)
            if self._described > _MOST_DESCRIBED:
                raise RecordingError("it describes too many kinds of rows.")
        return Interval(raw, before)

    def _alert(self, frame: Frame) -> Alert:
        if self.hello is None:
            raise RecordingError("it does not greet.")
        # Whoever knows the token may speak, but only for itself.
        alert = alert_from(unpack_payload(frame.payload)[0])
        return replace(alert, node=self.hello.node, boot_id=self.hello.boot_id)
