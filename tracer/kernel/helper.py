"""The one small process that keeps privileges: forked when everything is attached, asked over a socket, gone with us.

It may hang in the kernel (a stack is read under a lock of the task's): nobody waits for it longer than said here.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from tracer.kernel import forking
from tracer.kernel.deeds import CAPABILITIES, Deeds
from tracer.kernel.errands import ANSWER, MOST_BYTES, MOST_CLOCKS, QUESTION, Errand, serve
from tracer.kernel.keeper import fork_keeper

__all__ = ["NAME", "Helper"]

NAME = "foreshock-help"

_PATIENCE_SECONDS = {Errand.CLOCKS: 0.5, Errand.ACCOUNTING: 0.1, Errand.STACK: 0.1, Errand.VARIABLES: 0.1}
_END_SECONDS = 0.5


class Helper:
    """Has ``deeds`` done by a process of its own, with their ``CAPABILITIES`` and no other.

    Construct it before this process starts a thread; ask from one thread only. ``forget`` is called in the helper, to
    give back what it has no use for. Raises OSError when there can't be one.
    """

    def __init__(self, deeds: Deeds, forget: Callable[[], None]) -> None:
        self.pid, self._channel = fork_keeper(
            NAME, CAPABILITIES, lambda channel: serve(channel, deeds), forget, deeds.programs
        )
        self._number = 0
        self._waiting = self._gone = False

    def clocks(self, cpu: int) -> list[int]:
        """As ``Deeds`` does; TimeoutError when the helper does not answer, ConnectionError when there is none."""
        return self._ask(Errand.CLOCKS, cpu)[1]

    def accounting(self) -> int:
        """As ``clocks``."""
        (descriptor,) = self._ask(Errand.ACCOUNTING)[1]
        return descriptor

    def stack(self, tid: int) -> bytes:
        """As ``clocks``."""
        return self._ask(Errand.STACK, tid)[0]

    def variables(self, pid: int) -> bytes:
        """As ``clocks``."""
        return self._ask(Errand.VARIABLES, pid)[0]

    def trouble(self) -> str:
        """Return what to say once the helper has ended, which it should not; "" as long as it is there."""
        self._gone = self._gone or forking.ends(self.pid, 0)
        return f"the privileged helper (pid {self.pid}) died: {_WITHOUT}" if self._gone else ""

    def close(self) -> None:
        """End it; one that is stuck in the kernel is left to the kernel."""
        self._channel.close()
        if not self._gone:
            forking.end(self.pid, _END_SECONDS)
        self._gone = True

    def _ask(self, errand: Errand, argument: int = 0) -> tuple[bytes, list[int]]:
        # One that has not answered yet hangs: at most one question waits for it, and nobody waits with it.
        if self._waiting:
            self._receive(0)
        self._number = (self._number + 1) & 0xFFFFFFFF
        self._channel.settimeout(0)
        self._channel.send(QUESTION.pack(self._number, errand, argument))
        self._waiting = True
        error, text, descriptors = self._receive(_PATIENCE_SECONDS[errand])
        if error:
            raise OSError(error, os.strerror(error))
        return text, descriptors

    def _receive(self, seconds: float) -> tuple[int, bytes, list[int]]:
        """Return the answer to the last question; one that came too late is given back."""
        late = not seconds
        self._channel.settimeout(seconds)
        try:
            data, descriptors, _, _ = socket.recv_fds(self._channel, MOST_BYTES, MOST_CLOCKS, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            raise TimeoutError from None
        if not data:
            raise ConnectionResetError
        self._waiting = False
        if late:
            for descriptor in descriptors:
                os.close(descriptor)
            return 0, b"", []
        return ANSWER.unpack_from(data)[1], data[ANSWER.size :], descriptors


_WITHOUT = (
    "from now on no clocks for CPUs that come online, no run times of programs, no stacks of blocked tasks, no new "
    "ranks of jobs; everything else goes on"
)
