"""The parent's side of a workload: start it, say go, ask what it did, end it whatever happened."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tracer.errors import ForeshockError, UnavailableError

__all__ = ["Workload", "WorkloadError"]

# Appended, so that the standard library comes first; without site-packages no other foreshock can be found.
_START = "import sys; sys.path.append(sys.argv[1]); from tracer.workloads._child import main; main(*sys.argv[2:])"

#: How much longer than its work a child may live: it also starts, and waits to be looked at.
_GRACE_SECONDS = 30.0


class WorkloadError(ForeshockError):
    """A workload of our own could not do its work."""


class Workload:
    """A process that does known work between ``go`` and its ``result``. Started from a thread that outlives it.

    It ends with the ``with`` block, with this process (also a killed one), and by itself some time after ``seconds``.
    """

    def __init__(self, module: str, seconds: float, **arguments: Any) -> None:
        self._module = module
        self._seconds = seconds
        self._arguments = arguments
        self._result: dict[str, Any] | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def go(self) -> None:
        """Let it work. Returns at once."""
        assert self._process.stdin is not None
        # One that has ended can't be told; result() says so.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"g")

    def result(self) -> dict[str, Any]:
        """Wait until the work is done; return what it did. Raises WorkloadError."""
        if self._result is None:
            self._result = self._hear()
        return self._result

    def __enter__(self) -> Workload:
        self._process = self._started()
        try:
            self._hear()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        command = self._command()
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                # Ctrl-C goes to the whole foreground group: this process says when its workloads end.
                start_new_session=True,
            )
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UnavailableError(
                f"can't run {command[0]} again, for workloads: {reason}.",
                hint="use an interpreter that this user may execute",
            ) from None

    def _command(self) -> list[str]:
        folder = str(Path(__file__).parent.parent.parent)
        lifetime = str(self._seconds + _GRACE_SECONDS)
        arguments = json.dumps(self._arguments)
        return [sys.executable, "-I", "-S", "-c", _START, folder, str(os.getpid()), self._module, lifetime, arguments]

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        told: dict[str, Any] = json.loads(line) if line else {"error": "ended without a word"}
        if "error" in told:
            raise WorkloadError(f"the workload {self._module} failed: {told['error']}.")
        return told

    def _end(self) -> None:
        # Not asked but killed: it holds nothing that the kernel doesn't give back.
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
