"""Wait for the kernel only so long: a device that hangs must not hang the one who watches it.

Asking a network device takes the RTNL lock, reading an RDMA counter may wait for the card's firmware. Both can
take minutes on a node that is about to fail, in a sleep that no signal ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Patience"]

_Answer = TypeVar("_Answer")
_STACK_BYTES = 256 << 10  # an agent with locked memory pays for all of it


class Patience(Generic[_Answer]):
    """Calls ``question`` on a thread of its own and gives up waiting after ``seconds``.

    The thread isn't given up: while it is stuck, ``ask()`` says None at once, and its late answer is dropped.
    """

    def __init__(self, question: Callable[[], _Answer], seconds: float) -> None:
        self._question = question
        self._seconds = seconds
        self._asked = threading.Semaphore(0)
        self._answered = threading.Event()
        self._busy = False
        self._stopped = False
        self._answer: _Answer | None = None
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def ask(self) -> _Answer | None:
        """Return the answer, or None when it didn't come in time. What ``question`` raises is raised here."""
        if self._thread is None:
            self._start()
        if self._busy:
            # A late answer is about a moment long past.
            if not self._answered.is_set():
                return None
            self._busy = False
        self._answered.clear()
        self._asked.release()
        self._busy = not self._answered.wait(self._seconds)
        if self._busy:
            return None
        if self._error is not None:
            raise self._error
        return self._answer

    def close(self) -> None:
        """End the thread; one that is stuck ends when the kernel lets it go."""
        self._stopped = True
        self._asked.release()
        if self._thread is not None:
            self._thread.join(self._seconds)

    def _start(self) -> None:
        before = threading.stack_size(_STACK_BYTES)
        try:
            self._thread = threading.Thread(target=self._run, name="patience", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(before)

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            if self._stopped:
                return
            self._answer, self._error = None, None
            try:
                self._answer = self._question()
            except Exception as error:  # raised again where the answer is waited for
                self._error = error
            self._answered.set()
