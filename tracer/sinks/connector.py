"""Open a stream's connection in the background, again and again, so that whoever sends never waits for the network."""

from __future__ import annotations

import queue
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from tracer.errors import ForeshockError, RecordingError, UsageError
from tracer.recording.frames import PREAMBLE, Frame, check_preamble, read_frame
from tracer.recording.greeting import GREETING_BYTES, Hello, read_answer, read_nonce

__all__ = ["Connector", "tls_context"]

_STEP_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 15.0
_REASONS = 4
# Data that nobody acknowledges for so long breaks the connection; the kernel's own patience is a quarter of an hour.
_UNACKNOWLEDGED_MS = 5000


class Connector:
    """A thread that makes one connection per ``ask`` and leaves it, greeted and non-blocking, in ``ready``."""

    def __init__(
        self,
        address: tuple[str, int],
        hello: Hello,
        token: str | None,
        tls: ssl.SSLContext | None,
        report: Callable[[str], None],
    ) -> None:
        self.ready: socket.socket | None = None
        self._address, self._hello, self._token, self._tls = address, hello, token, tls
        self._report = report
        self._where = f"{address[0]}:{address[1]}"
        self._told: set[str] = set()
        self._asked: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._greeting = False
        self._thread = threading.Thread(target=self._run, name="stream", daemon=True)
        self._thread.start()

    def ask(self, dropped: int) -> None:
        """Ask for a connection; ``dropped`` goes into its greeting. Never waits."""
        self._asked.put(dropped)

    def take(self) -> socket.socket | None:
        """Return the connection once it is there."""
        made, self.ready = self.ready, None
        return made

    def close(self, seconds: float) -> None:
        """Greet nobody any more, and wait so long for the end of a greeting: what comes of it is in ``ready``, too."""
        self._closing.set()
        self._asked.put(None)
        if self._greeting:
            self._thread.join(seconds)

    def _run(self) -> None:
        while (dropped := self._asked.get()) is not None:
            pause = _FIRST_PAUSE
            while not self._closing.is_set() and not self._connect(dropped):
                # At random, so that a thousand nodes don't come back to a restarted receiver all at once.
                self._closing.wait(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _connect(self, dropped: int) -> bool:
        try:
            self.ready = self._greeted(replace(self._hello, dropped=dropped))
        except (OSError, ForeshockError, ValueError) as error:
            if self._closing.is_set():
                return False
            # Another reason is news: what was not there at first may refuse later. Some are the receiver's own words.
            reason = _reason(error)
            if reason not in self._told and len(self._told) < _REASONS:
                self._report(f"no stream to {self._where}: {reason}; tried again and again")
                self._told.add(reason)
            return False
        finally:
            self._greeting = False
        if self._told:
            self._report(f"stream to {self._where} is up")
            self._told.clear()
        return True

    def _greeted(self, hello: Hello) -> socket.socket:
        made = socket.create_connection(self._address, timeout=_STEP_SECONDS)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
            if self._tls:
                made = self._tls.wrap_socket(made, server_hostname=self._address[0])
            read = _bounded(made)
            check_preamble(_exactly(read, len(PREAMBLE)))
            nonce = read_nonce(_frame(read))
            self._greeting = True
            # Who has greeted is expected to speak, and missed when it ends without a goodbye.
            if self._closing.is_set():
                raise ConnectionAbortedError
            made.sendall(hello.packed(nonce, self._token))
            if refused := read_answer(_frame(read)):
                raise RecordingError(f"it refuses: {refused}")
            made.setblocking(False)
            return made
        except BaseException:
            made.close()
            raise


def tls_context(options: dict[str, str]) -> ssl.SSLContext | None:
    """Return the TLS that ``tls``, ``tls-ca``, ``tls-cert`` and ``tls-key`` ask for. Raises UsageError."""
    if not any(option.startswith("tls") for option in options):
        return None
    try:
        context = ssl.create_default_context(cafile=options.get("tls-ca"))
        if "tls-cert" in options:
            # A key with a password would have OpenSSL ask for it on the terminal.
            context.load_cert_chain(options["tls-cert"], options.get("tls-key"), password="")
    except OSError as error:
        raise UsageError(
            f"the stream's certificates can't be used: {error}.", hint="PEM files, a key without password"
        ) from None
    return context


def _bounded(made: socket.socket) -> Callable[[int], bytes]:
    """Return a reader that gives up when a greeting takes too long, or is too long to be one."""
    give_up, room = time.monotonic() + 2 * _STEP_SECONDS, 2 * GREETING_BYTES

    def read(size: int) -> bytes:
        nonlocal room
        if time.monotonic() > give_up:
            raise TimeoutError
        data = made.recv(min(size, room) or 1)
        room -= len(data)
        if room < 0:
            raise RecordingError("it is no receiver of streams.")
        return data

    return read


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := read(size - len(data))):
        data += piece
    return data


def _frame(read: Callable[[int], bytes]) -> Frame:
    frame = read_frame(read)
    if frame is None:
        raise RecordingError("it hangs up.")
    return frame


def _reason(error: Exception) -> str:
    if isinstance(error, ForeshockError):
        return error.message.rstrip(".")
    if isinstance(error, TimeoutError):
        return "it takes too long"
    return str(getattr(error, "strerror", None) or error)
