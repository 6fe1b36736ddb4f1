"""Draw lines on a terminal and read keys, with the standard library alone; leave the terminal as it was."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections import deque
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import TextIO

__all__ = ["Terminal", "shows_unicode", "wants_color"]

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # alternate screen, no cursor, no wrapping of long lines
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_SEQUENCES = {b"[A": "up", b"[B": "down", b"[C": "right", b"[D": "left", b"OA": "up", b"OB": "down"}
_SEQUENCES |= {b"OC": "right", b"OD": "left", b"[5~": "page up", b"[6~": "page down", b"[H": "home", b"[F": "end"}
_SEQUENCES |= {b"OH": "home", b"OF": "end", b"[1~": "home", b"[4~": "end", b"[7~": "home", b"[8~": "end"}
_COLORLESS = ("dumb", "vt100", "vt102", "vt220")
_ESCAPE_SECONDS = 0.05  # how long the rest of an arrow key's sequence may take, over a slow line


def wants_color(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal that shows colour and nobody said no (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in _COLORLESS


def shows_unicode(stream: TextIO) -> bool:
    """Return whether ``stream``'s encoding has the signs that reports use."""
    try:
        "≤µ–…·\u202f".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class Terminal:
    """A context manager; within it the terminal shows ``draw``'s lines and ``key`` reads single keys.

    Ctrl-C still raises KeyboardInterrupt. SIGTERM and SIGHUP raise SystemExit, Ctrl-Z gives the terminal back until
    the process continues, so that every way out but SIGKILL restores it.
    """

    def __init__(self, keyboard: TextIO = sys.stdin, screen: TextIO = sys.stdout) -> None:
        self._keyboard = keyboard.fileno()
        self._screen = screen.fileno()
        self._keys: deque[str] = deque()
        self._saved: list[object] = []
        self._handlers: dict[int, object] = {}
        self._wake: tuple[int, int] = (-1, -1)

    def __enter__(self) -> Terminal:
        self._saved = termios.tcgetattr(self._keyboard)
        self._wake = os.pipe()
        for end in self._wake:
            os.set_blocking(end, False)
        handlers = {signal.SIGWINCH: self._on_resize, signal.SIGCONT: self._on_continue, signal.SIGTSTP: self._on_stop}
        handlers |= dict.fromkeys(_ENDING, self._on_end)
        for number, handler in handlers.items():
            self._handlers[number] = signal.signal(number, handler)
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        for end in self._wake:
            os.close(end)

    def size(self) -> tuple[int, int]:
        """Return columns and lines; 80 and 24 where the terminal does not know, as on a serial console."""
        try:
            columns, lines = os.get_terminal_size(self._screen)
        except OSError:
            columns, lines = 0, 0
        return columns or 80, lines or 24

    def draw(self, lines: Sequence[str]) -> None:
        """Show ``lines``, replacing what was there, in one write and without clearing first: nothing flickers."""
        height = self.size()[1]
        # Each line is cleared before it is written: after a full one the cursor stands on its last character.
        text = "\n".join(f"\x1b[K{line}" for line in lines[:height])
        rest = "\n\x1b[J" if len(lines) < height else ""
        self._write(f"\x1b[H{text}{rest}")

    def key(self, seconds: float) -> str:
        """Return the next key within ``seconds``: a character, ``"left"``…, ``"resize"``; "" when there was none."""
        if not self._keys:
            self._read(seconds)
        return self._keys.popleft() if self._keys else ""

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._keyboard, self._wake[0]], [], [], max(0.0, seconds))
        if self._wake[0] in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake[0], 64)
            self._keys.append("resize")
        if self._keyboard in ready:
            data = os.read(self._keyboard, 64)
            if not data:
                # The terminal is gone: as good as being asked to end.
                self._keys.append("q")
            elif data.endswith((b"\x1b", b"\x1b[", b"\x1bO")) and self._more(_ESCAPE_SECONDS):
                data += os.read(self._keyboard, 64)
            self._keys.extend(_parse(data))

    def _more(self, seconds: float) -> bool:
        return bool(select.select([self._keyboard], [], [], seconds)[0])

    def _start(self) -> None:
        tty.setcbreak(self._keyboard, termios.TCSANOW)
        self._write(_ENTER)

    def _give_back(self) -> None:
        # The terminal may be gone (SIGHUP); what can't be restored must not hide why we end.
        with contextlib.suppress(OSError, termios.error):
            self._write(_LEAVE)
        with contextlib.suppress(OSError, termios.error):
            # Now, not when all output has left: on a dead connection that would be never.
            termios.tcsetattr(self._keyboard, termios.TCSANOW, self._saved)  # type: ignore[arg-type]

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._screen, data) :]

    def _on_resize(self, number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake[1], b"r")

    def _on_continue(self, number: int, frame: FrameType | None) -> None:
        self._start()
        self._on_resize(number, frame)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._give_back()
        # Stop for real: the default action, then ours again once continued.
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_stop)

    def _on_end(self, number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)


def _parse(data: bytes) -> list[str]:
    """Split what was typed into keys; unknown sequences are dropped as a whole."""
    keys: list[str] = []
    while data:
        if data[0] != 0x1B:
            keys.append(chr(data[0]))
            data = data[1:]
            continue
        length = 1
        if data[1:2] in (b"[", b"O"):
            length = 2
            while length < len(data) and not 0x40 <= data[length] <= 0x7E:
                length += 1
            length += 1
        name = "escape" if length == 1 else _SEQUENCES.get(data[1:length], "")
        keys += [name] if name else []
        data = data[length:]
    return keys
