"""One path of a recorder: the queue, and the writer process that empties it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from tracer.blackbox.layout import Geometry, Note
from tracer.blackbox.queue import Sender, State
from tracer.errors import OutputError

__all__ = ["Lane", "Status"]

_START = "import sys; sys.path.insert(0, sys.argv[1]); from tracer.blackbox.writer import main; main()"
_START_SECONDS = 10.0
_REFUSED_SECONDS = 2.0
_AGAIN_NS = 10_000_000_000


@dataclass(frozen=True)
class Status:
    """How one path's writing goes. ``dropped``: frames that found no room, because the disk is slow or hangs.

    ``lost``: frames that the disk refused; ``error`` says why. ``behind``: frames not durable yet. ``died``: writers
    that ended before they were told to.
    """

    path: str
    dropped: int
    durable: int
    lost: int
    behind: int
    error: str
    died: int = 0


class Lane:
    """One path: a queue and the process that empties it."""

    def __init__(self, path: str, geometry: Geometry, header: bytes, boot_id: str) -> None:
        self._path = path
        self._geometry = geometry
        self._header = header
        self._boot_id = boot_id
        self._run = secrets.randbits(63)
        self._dropped = self._sent = self._sequence = self._died = 0
        self._before = State()
        self._started_ns = 0
        self._closed = False
        self._queue: Sender | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> list[str]:
        """Start the writer and wait for its answer. Return what to tell. Raises OutputError."""
        try:
            process = self._start(answer=subprocess.PIPE)
        except OSError as error:
            raise OutputError(f"black box {self._path}: {(error.strerror or str(error)).lower()}.") from None
        assert process.stdout is not None
        with process.stdout as answer:
            ready, _, _ = select.select([answer], [], [], _START_SECONDS)
            if not ready:
                return [f"black box {self._path}: the disk has not answered within {_START_SECONDS:g} s"]
            words = json.loads(answer.readline() or b'{"error": "the black box\'s writer could not be started."}')
        if "error" in words:
            self.close()
            self.wait(time.monotonic() + _REFUSED_SECONDS)
            raise OutputError(words["error"], hint=words.get("hint", ""))
        return list(words["notes"])

    def send(self, frame: bytes, kind: int, urgent: bool) -> None:
        """Hand a frame over, or count it as dropped."""
        if self._closed:
            return
        now = time.monotonic_ns()
        note = Note(kind, self._sequence, self._dropped, now, time.time_ns())
        sent = self._offer(frame, note, urgent)
        if self._queue is None and self._restart(now):
            sent = self._offer(frame, replace(note, dropped=self._dropped), urgent)
        if sent:
            self._sent += 1
            self._sequence += 1
        else:
            self._dropped += 1

    def _offer(self, frame: bytes, note: Note, urgent: bool) -> bool:
        try:
            return self._queue is not None and self._queue.send(frame, note, urgent=urgent)
        except BrokenPipeError:
            self._count()
            return False

    def state(self) -> State:
        """Return what the present writer says; nothing when there is none."""
        return self._queue.state() if self._queue else State()

    def status(self) -> Status:
        """Return how it goes, over all writers so far."""
        state = self.state().plus(self._before)
        behind = max(0, self._sent - state.durable - state.lost)
        error = os.strerror(state.error).lower() if state.error else ""
        return Status(self._path, self._dropped, state.durable, state.lost, behind, error, self._died)

    def close(self) -> None:
        """Let the writer finish. Nothing is sent any more."""
        self._closed = True
        if self._queue:
            self._queue.finish()

    def wait(self, until: float) -> None:
        """Wait for the writer's end; one that hangs in the kernel is left to end when it can."""
        if self._process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, until - time.monotonic()))
        self._count()

    def _start(self, answer: int) -> subprocess.Popen[bytes]:
        self._started_ns = time.monotonic_ns()
        queue = Sender(self._header)
        order = {
            "path": self._path,
            "segment_bytes": self._geometry.segment_bytes,
            "segments": self._geometry.segments,
            "boot_id": self._boot_id,
            "run": self._run,
            "memory_fd": queue.memory_fd,
            "wake_fd": queue.wake_fd,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _START, str(Path(__file__).parents[2]), json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            pass_fds=[queue.memory_fd, queue.wake_fd],
            start_new_session=True,
        )
        queue.handed_over()
        self._queue = queue
        return self._process

    def _restart(self, now_ns: int) -> bool:
        """Start another writer for one that was killed, not more often than the disk could stand."""
        if self._closed or now_ns - self._started_ns < _AGAIN_NS:
            return False
        if self._process and self._process.poll() is None:
            return False  # one whose other hand has died still holds the box
        with contextlib.suppress(OSError):
            self._start(answer=subprocess.DEVNULL)
        return self._queue is not None

    def _count(self) -> None:
        """The writer is gone, or about to: add up what it made durable, and give its queue back."""
        if self._queue is None:
            return
        self._before = self._before.plus(self._queue.state())
        self._queue.close()
        self._queue = None
        if not self._closed:
            self._died += 1
            # What it had in hand is not coming back.
            gone = self._sent - self._before.durable - self._before.lost
            self._dropped, self._sent = self._dropped + gone, self._sent - gone
            if self._process:
                self._process.poll()
