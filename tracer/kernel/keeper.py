"""A process that keeps privileges which this one is about to give up, at the other end of a socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection

from tracer.kernel import forking, privilege
from tracer.kernel.processes import own_name

__all__ = ["fork_keeper"]


def fork_keeper(
    name: str,
    capabilities: Collection[str],
    serve: Callable[[socket.socket], None],
    forget: Callable[[], None],
    kept: Collection[int] = (),
) -> tuple[int, socket.socket]:
    """Fork a process that does ``serve`` with ``capabilities`` and no others; return its pid, and its channel.

    To be called before this process starts a thread. ``forget`` is called in it, to give back what it has no use for;
    of the descriptors it has ``kept`` and no others, so that above all the programs' end with their owner. ``name``
    is what the kernel calls it. Raises OSError.
    """
    forking.ready_memory()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def work() -> None:
        own_name(name)
        forget()
        # Whoever reads what the parent prints does not wait for this one.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        forking.close_all_but((theirs.fileno(), *kept))
        privilege.keep_only(capabilities)
        serve(theirs)

    try:
        return forking.fork(name, work), ours
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
