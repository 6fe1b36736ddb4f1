"""Wait for the kernel only so long: a device that hangs must not hang the one who watches it.

Asking a network device takes the RTNL lock, reading an RDMA counter may wait for the card's firmware. Both can
take minutes on a node that is about to fail, in a sleep that no signal ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
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
        # Of C, unlike the rest of threading: a question costs two wake-ups and little else.
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._answers: SimpleQueue[tuple[_Answer | None, Exception | None]] = SimpleQueue()
        self._busy = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def ask(self) -> _Answer | None:
        """Return the answer, or None when it didn't come in time. What ``question`` raises is raised here."""
        if self._thread is None:
            self._start()
        try:
            if self._busy:
                # A late answer is about a moment long past.
                self._answers.get_nowait()
            self._busy = True
            self._asked.put(True)
            answer, error = self._answers.get(timeout=self._seconds)
        except Empty:
            return None
        self._busy = False
        if error is not None:
            raise error
        return answer

    def close(self) -> None:
        """End the thread; one that is stuck ends when the kernel lets it go."""
        self._stopped = True
        self._asked.put(False)
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
        while self._asked.get() and not self._stopped:
            try:
                self._answers.put((self._question(), None))
            except Exception as error:  # raised again where the answer is waited for
                self._answers.put((None, error))
