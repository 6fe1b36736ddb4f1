"""What the privileged helper answers, and how: a closed set of questions, each as long as the others.

A question is ``QUESTION`` (its number, an ``Errand``, an argument), an answer ``ANSWER`` (that number, 0 or an errno)
with a text behind it, a stack or variables, or with descriptors.
"""

from __future__ import annotations

import enum
import errno
import os
import socket
import struct
import time

from tracer.kernel.deeds import Deeds
from tracer.kernel.hungtasks import STACK_BYTES

__all__ = ["ANSWER", "MOST_BYTES", "MOST_CLOCKS", "QUESTION", "Errand", "serve"]

QUESTION = struct.Struct("<III")
ANSWER = struct.Struct("<II")
MOST_BYTES = ANSWER.size + STACK_BYTES
#: Programs that run by the clock: two are declared.
MOST_CLOCKS = 8


class Errand(enum.IntEnum):
    """What may be asked for. The argument is a CPU, nothing (0), a thread, or a process."""

    CLOCKS = 1
    ACCOUNTING = 2
    STACK = 3
    VARIABLES = 4


class _Budget:
    """So many at once, and as many again in the course of ``seconds``."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._left, self._at = float(most), time.monotonic()

    def spend(self) -> None:
        """Raise OSError, EAGAIN, when there is nothing left."""
        before, self._at = self._at, time.monotonic()
        self._left = min(self._most, self._left + (self._at - before) * self._most / self._seconds)
        if self._left < 1:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self._left -= 1


def serve(channel: socket.socket, deeds: Deeds) -> None:
    """Answer until the other end is closed."""
    budgets = {
        # Every CPU may come online at once, and be taken away and brought again.
        Errand.CLOCKS: _Budget(2 * len(deeds.cpus), 10),
        Errand.ACCOUNTING: _Budget(2, 60),
        Errand.STACK: _Budget(64, 1),
        # All processes at the start, where a job is asked for.
        Errand.VARIABLES: _Budget(4096, 60),
    }
    while question := _received(channel):
        answer, descriptors = _answer(question, deeds, budgets)
        try:
            socket.send_fds(channel, [answer], descriptors)
        except OSError:
            return  # nobody is there any more
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _received(channel: socket.socket) -> bytes:
    """Return the next question, b"" at the end: also of one who has left an answer unread."""
    try:
        return channel.recv(QUESTION.size + 1)
    except ConnectionResetError:
        return b""


def _answer(question: bytes, deeds: Deeds, budgets: dict[Errand, _Budget]) -> tuple[bytes, list[int]]:
    number, error, text = 0, 0, b""
    descriptors: list[int] = []
    try:
        number, kind, argument = QUESTION.unpack(question)
        errand = Errand(kind)
        budgets[errand].spend()
        if errand is Errand.CLOCKS:
            descriptors = deeds.clocks(argument)
        elif errand is Errand.STACK:
            text = deeds.stack(argument)
        elif errand is Errand.VARIABLES:
            text = deeds.variables(argument)
        else:
            descriptors = [deeds.accounting()]
    except (struct.error, ValueError):
        error = errno.EINVAL
    except OSError as refusal:
        error = refusal.errno or errno.EIO
    return ANSWER.pack(number, error) + text, descriptors
