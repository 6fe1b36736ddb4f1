"""Give the loader child its job and take over what it attached.

Programs stay attached as long as this process holds the descriptors, and no longer.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tracer.errors import UnavailableError
from tracer.kernel.child import Child, take

__all__ = ["ATTACH_SECONDS", "Loaded", "LoaderError", "LoaderGoneError", "run_loader"]

#: All that attaching may take, trials of single probes included: it takes 0.6 s, on an emulated machine some 20.
ATTACH_SECONDS = 45.0

_PACKET = 1 << 16


_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class LoaderError(UnavailableError):
    """The programs could not be compiled, loaded or attached."""


class LoaderGoneError(LoaderError):
    """The loader was killed or hangs: no probe's fault, and no use in trying them one by one."""


@dataclass
class Loaded:
    """Everything one loader run left behind. Descriptors are this process's: ``close`` detaches."""

    maps: dict[str, int] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)
    handlers: dict[str, list[str]] = field(default_factory=dict)
    links: list[int] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    ending: threading.Thread | None = None

    def close(self) -> None:
        """Detach and free everything that is still held here."""
        self.settle()
        for descriptor in (*self.links, *self.programs.values(), *self.maps.values()):
            os.close(descriptor)
        self.links, self.programs, self.maps = [], {}, {}

    def settle(self) -> None:
        """Wait for the loader's end."""
        if self.ending:
            self.ending.join()


def run_loader(
    job: dict[str, Any], interpreter: str, fill: Callable[[dict[str, int]], None], *, timeout: float = ATTACH_SECONDS
) -> Loaded:
    """Compile, load and attach ``job`` in a child; return what it handed over.

    ``fill(maps)`` is called when the maps exist and no program runs yet. Raises LoaderError with the compiler's,
    the verifier's or LLVM's own last words, OSError at the limit of open files, and KeyboardInterrupt on Ctrl-C,
    whoever handles that otherwise; nothing stays attached then.
    """
    loaded = Loaded()
    try:
        child = take(interpreter)
    except OSError as error:
        raise LoaderError(f"can't run {interpreter}: {error.strerror}", hint=_HINT) from None
    try:
        with _interruptible():
            child.give(job)
            _converse(child.channel, loaded, fill, time.monotonic() + timeout)
    except BaseException as error:
        loaded.close()
        try:
            if isinstance(error, (_Ended, TimeoutError, ConnectionError)):
                raise _failure(child, error) from None
            raise
        finally:
            child.close()
    # It has nothing more to say; giving back its memory takes it longer than we want to wait.
    loaded.ending = threading.Thread(target=child.finish, name="loader's end", daemon=True)
    loaded.ending.start()
    return loaded


_HINT = "foreshock doctor tells what this node lacks; FORESHOCK_DEBUG=1 shows the loader's whole output"


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the wait: who only notes that it came would have us wait for a loader that hangs."""
    before = signal.getsignal(signal.SIGINT)
    # Ignored, it stays so; and only the main thread is told of signals.
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Ended(Exception):
    """The loader stopped without being done; the text is its reason, if it gave one."""


def _converse(channel: socket.socket, loaded: Loaded, fill: Callable[[dict[str, int]], None], deadline: float) -> None:
    while True:
        channel.settimeout(max(0.01, deadline - time.monotonic()))
        data, descriptors, flags, _ = socket.recv_fds(channel, _PACKET, 1, socket.MSG_CMSG_CLOEXEC)
        if flags & socket.MSG_CTRUNC:  # the kernel gives none, and nothing else would say so
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if not data:
            raise _Ended("")
        message = json.loads(data)
        _keep(message, descriptors, loaded)
        if "fill" in message:
            fill(loaded.maps)
            channel.send(b"go")
        elif "error" in message:
            raise _Ended(message["error"])
        elif "done" in message:
            loaded.seconds = message["seconds"]
            return


def _keep(message: dict[str, Any], descriptors: list[int], loaded: Loaded) -> None:
    for descriptor in descriptors:
        if "map" in message:
            loaded.maps[message["map"]] = descriptor
        elif "program" in message:
            loaded.programs[message["program"]] = descriptor
            loaded.handlers[message["program"]] = message["probes"]
        else:
            loaded.links.append(descriptor)
    if "refused" in message:
        loaded.refused[message["refused"]] = message["reason"]
    if "missing" in message:
        loaded.missing.append((message["missing"], message["reason"]))


def _failure(child: Child, error: BaseException) -> LoaderError:
    """Say in one line why the loader ended: its own reason, and the last line of what it printed."""
    status = None if isinstance(error, TimeoutError) else child.wait()
    text = "" if status is None else child.words
    if os.environ.get("FORESHOCK_DEBUG"):
        os.write(2, text.encode())
    lines = [line.strip() for line in text.splitlines() if "error" in line.lower()] or text.split("\n")[-2:-1]
    printed = f": {lines[0][:300]}" if lines and lines[0] else ""
    if isinstance(error, _Ended) and str(error):
        return LoaderError(f"{error}{printed}" if "bcc" in str(error) else str(error), hint=_HINT)
    if status is None:
        return LoaderGoneError("the loader did not finish in time", hint=_HINT)
    how = f"with status {status}" if status >= 0 else f"by signal {-status}"
    message = f"the loader ended {how} while compiling or loading{printed}"
    # Somebody's kill, or the kernel's for want of memory.
    return LoaderGoneError(message, hint=_HINT) if -status in _FROM_OUTSIDE else LoaderError(message, hint=_HINT)
