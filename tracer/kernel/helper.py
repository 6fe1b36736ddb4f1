"""The one small process that keeps privileges: forked when everything is attached, asked over a socket, gone with us.

It may hang in the kernel (a stack is read under a lock of the task's): nobody waits for it longer than said here.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from typing import NoReturn

from tracer.kernel import forking, privilege
from tracer.kernel.deeds import CAPABILITIES, Deeds
from tracer.kernel.errands import ANSWER, MOST_BYTES, MOST_CLOCKS, QUESTION, Errand, serve
from tracer.kernel.processes import own_name

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
        forking.ready_memory()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, forking.ENDING)
        try:
            self.pid = os.fork()
            if not self.pid:
                _live(theirs, deeds, forget, parent)
        except OSError:
            self._channel.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
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
        if not self._gone and not forking.ends(self.pid, _END_SECONDS):
            os.kill(self.pid, signal.SIGKILL)
            forking.ends(self.pid, 0.1)
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


def _live(channel: socket.socket, deeds: Deeds, forget: Callable[[], None], parent: int) -> NoReturn:
    code = 1
    try:
        forking.settle_down(parent)
        own_name(NAME)
        forget()
        # Whoever reads what the parent prints does not wait for this one.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        forking.close_all_but((channel.fileno(), *deeds.programs))
        privilege.keep_only(CAPABILITIES)
        serve(channel, deeds)
        code = 0
    except BaseException as error:
        # Straight to the descriptor: buffers may hold what the parent had not written yet.
        os.write(2, f"foreshock: helper: {type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(code)
