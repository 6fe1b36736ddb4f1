"""Listen, until a signal says to stop."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import resource
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any

from tracer.errors import UnavailableError, UsageError
from tracer.fleet.connection import Connection
from tracer.fleet.receiver import TICK_NS, Receiver

__all__ = ["addresses_of", "most_connections", "serve"]

_BACKLOG = 1024
_SPARE_FILES = 64


def addresses_of(host: str, *, open_to_all: bool) -> list[str]:
    """Return the addresses to listen on. Raises UsageError for one beyond loopback unless it is ``open_to_all``."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(f"there is no address of '{host}'.", hint="for example --listen 127.0.0.1:9750") from None
    addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
    if not open_to_all:
        for address in addresses:
            if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
                raise UsageError(
                    f"{address} can be reached from other hosts, and there is no token.",
                    hint="--token-file FILE, or --insecure to take what anybody sends",
                )
    return addresses


def most_connections(wanted: int) -> int:
    """Return how many connections this process may have, having raised its limit of open files as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return max(1, min(wanted, soft - _SPARE_FILES))
    return wanted


def serve(receiver: Receiver, addresses: Sequence[str], port: int, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP. Raises UnavailableError where it can't listen."""
    asyncio.run(_serve(receiver, addresses, port, say))


async def _serve(receiver: Receiver, addresses: Sequence[str], port: int, say: Callable[[str], None]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.set_exception_handler(lambda _, context: say(_described(context)))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    try:
        server = await loop.create_server(lambda: Connection(receiver), addresses, port, backlog=_BACKLOG)
    except OSError as error:
        raise UnavailableError(
            f"can't listen on port {port} of {', '.join(addresses)}: {error.strerror}.", hint="--listen HOST:PORT"
        ) from None
    listening = [made.getsockname() for made in server.sockets]
    say("listening on " + ", ".join(f"{name[0]}:{name[1]}" for name in listening))
    waiting = asyncio.ensure_future(stop.wait())
    while not stop.is_set():
        await asyncio.wait((waiting,), timeout=TICK_NS / 1e9)
        receiver.tick()
    server.close()
    receiver.close()
    await asyncio.sleep(0)  # the closed connections are told so


def _described(context: dict[str, Any]) -> str:
    """Return one line for what asyncio finds itself, such as that there are no more descriptors."""
    error = context.get("exception")
    return f"{context.get('message', 'trouble')}{f': {error}' if error else ''}"
