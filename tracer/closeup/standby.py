"""The process that keeps what attaching takes: forked before that is given up, asleep until an alert, gone with us.

It is told which alert, and nothing else that matters: what runs, for how long, how often and where to is fixed when it
is forked. The work itself is done by a child of its own (``worker``), one at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from tracer.closeup.folder import begun_ns
from tracer.closeup.order import Order
from tracer.closeup.terms import Budget, Terms
from tracer.closeup.worker import work
from tracer.kernel import forking
from tracer.kernel.keeper import fork_keeper

__all__ = ["Standby"]

NAME = "foreshock-stby"
#: What loading, attaching and naming functions take; the report needs none.
_KEPT = ("bpf", "perfmon", "sys_admin", "sys_ptrace", "syslog", "dac_override", "dac_read_search")
_MOST_BYTES = 1 << 16
_END_SECONDS = 1.0


class Standby:
    """Forks it. Construct it before this process gives up its privileges or starts a thread. Raises OSError.

    ``forget`` is called in the fork, to give back what it has no use for.
    """

    def __init__(self, terms: Terms, forget: Callable[[], None]) -> None:
        self.terms = terms
        self.pid, self._channel = fork_keeper(NAME, _KEPT, lambda channel: _serve(channel, terms), forget)
        self._channel.setblocking(False)

    def say(self, message: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> str:
        """Tell it something, without waiting; return "" or why that is not possible."""
        data = json.dumps(message).encode()
        if len(data) > _MOST_BYTES:
            return f"the alert takes {len(data)} bytes"
        try:
            socket.send_fds(self._channel, [data], list(descriptors))
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return ""

    def received(self) -> list[dict[str, Any]]:
        """Return what it has said since the last call. Raises EOFError when it is gone."""
        found: list[dict[str, Any]] = []
        while True:
            try:
                data = self._channel.recv(_MOST_BYTES)
            except BlockingIOError:
                return found
            except OSError:
                data = b""
            if not data:
                raise EOFError
            found.append(json.loads(data))

    def fileno(self) -> int:
        """Return what becomes readable when it says something."""
        return self._channel.fileno()

    def close(self) -> None:
        """End it, and what it does."""
        self._channel.close()
        if self.pid:
            # Its child is killed by the kernel then, and what that has attached goes with it.
            forking.end(self.pid, _END_SECONDS)
        self.pid = 0


def _serve(channel: socket.socket, terms: Terms) -> None:
    """Do what is asked until the other end is closed."""
    budget, own = Budget(terms, begun_ns(terms.folder, time.monotonic_ns())), os.getpid()
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(channel, _MOST_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return  # it is gone, and has left unread what was told last
        for descriptor in descriptors:
            os.close(descriptor)  # for a worker that has ended
        if not data:
            return
        order = Order.read(data)
        if order is None:
            continue
        now_ns = time.monotonic_ns()
        failed = budget.objection(now_ns)
        if not failed:
            budget.spend(now_ns)
            pid = os.fork()
            if not pid:
                work(channel, terms, order, own)
            _, status = os.waitpid(pid, 0)
            failed = f"it was ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""
        with contextlib.suppress(OSError):
            channel.send(json.dumps({"done": True, **({"failed": failed} if failed else {})}).encode())
