"""The loader as a process: started early, so that it gets ready while this one is still importing.

It is the only process that imports bcc, and with it LLVM: it holds 120 MB and more, may exit or abort on its own,
changes directories and limits. It lives for half a second and dies with its parent.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import resource
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from tracer.kernel import cpus

__all__ = ["Child", "start_early", "take"]

#: Loaded from its folder under a name of our own: a distribution's package ``loader`` would win on sys.path.
_START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("foreshock_loader", sys.argv[1] + "/__init__.py")
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
from foreshock_loader.main import main
main()
"""
_FOLDER = Path(__file__).absolute().with_name("loader")
_PATIENCE_SECONDS = 5
_KEPT_BYTES = 1 << 20
#: Room for a whole job, so that giving it to a child that does not read never blocks.
_JOB_BYTES = 1 << 18


class Child:
    """One loader process. ``channel`` is our end of the socket it answers on. Raises OSError if it can't be started."""

    def __init__(self, interpreter: str) -> None:
        self.interpreter = interpreter
        _raise_limit()
        with contextlib.ExitStack() as stack:
            self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(self.channel)
            # In memory: where the root file system is read-only, no folder may be there for a temporary file.
            self._words = stack.enter_context(os.fdopen(os.memfd_create("loader"), "w+b"))
            with theirs:
                self._process = subprocess.Popen(
                    [interpreter, "-I", "-c", _START, str(_FOLDER), str(theirs.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=self._words,
                    stderr=self._words,
                    pass_fds=[theirs.fileno()],
                    # bcc puts it first on its include path: there is no header in it, and nobody else's file.
                    cwd=_FOLDER,
                    env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
                    # Ctrl-C goes to the whole foreground group: the child must not die of it half-way and leave
                    # a traceback; it dies with this process instead.
                    start_new_session=True,
                )
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):  # a smaller one will do on all but the largest nodes
                fcntl.fcntl(self._process.stdin, fcntl.F_SETPIPE_SZ, _JOB_BYTES)
            self._resources = stack.pop_all()

    def give(self, job: dict[str, Any]) -> None:
        """Tell it what to do, on the CPUs where this thread may run now: they may be fewer than when it was started."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it may have died at once
            os.sched_setaffinity(self._process.pid, os.sched_getaffinity(0))
        # It may have died at once; its last words say why.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(job).encode())
            self._process.stdin.close()

    def wait(self) -> int | None:
        """Return its exit status once it has ended, negative for a signal; None if it doesn't."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_PATIENCE_SECONDS)
        return self._process.returncode

    @property
    def words(self) -> str:
        """What it printed."""
        self._words.seek(0)
        return self._words.read(_KEPT_BYTES).decode(errors="replace")

    def finish(self) -> None:
        """Let it end by itself, then give everything back."""
        self.wait()
        self.close()

    def close(self) -> None:
        """End it if it still runs."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.kill()
        self.wait()  # a process that sleeps in the kernel dies later
        self._resources.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _raise_limit() -> None:
    """Let both processes have as many descriptors as they may: each CPU takes one for each clock and ring."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


_early: list[Child] = []


@atexit.register
def _end_early() -> None:
    """End what nobody took: one that stands still since its first moment would outlive this process."""
    while _early:
        _early.pop().close()


def start_early(interpreter: str) -> None:
    """Start a loader now for the next ``take``: it imports bcc and reads the kernel's types meanwhile."""
    cpus.leave_undisturbed()
    with contextlib.suppress(OSError):  # said when it is needed
        _early.append(Child(interpreter))


def take(interpreter: str) -> Child:
    """Return the loader that was started early, or a new one."""
    while _early:
        child = _early.pop()
        if child.interpreter == interpreter:
            return child
        child.close()
    return Child(interpreter)
