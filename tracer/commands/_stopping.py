"""End a running trace in good order when asked to: Ctrl-C, SIGTERM, a closed terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["stopping", "waking"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: timeout(1) signals its child, and then the child's whole group: the same request, twice.
_SAME_SECONDS = 1.0


@contextlib.contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that the first of these signals sets; one more, a second later, interrupts whatever still runs."""
    stop = threading.Event()
    asked_at = 0.0

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked_at
        now = time.monotonic()
        if not stop.is_set():
            asked_at = now
            stop.set()
        elif now - asked_at >= _SAME_SECONDS:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def waking() -> Iterator[int]:
    """Yield a descriptor that becomes readable with the first signal, for who waits for descriptors."""
    wakes, end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = signal.set_wakeup_fd(end)
    try:
        yield wakes
    finally:
        signal.set_wakeup_fd(before)
        os.close(wakes)
        os.close(end)
