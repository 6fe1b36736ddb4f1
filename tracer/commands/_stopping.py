"""End a running trace in good order when asked to: Ctrl-C, SIGTERM, a closed terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["stopping", "waking"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that the first of these signals sets; a second one interrupts whatever still runs."""
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

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
