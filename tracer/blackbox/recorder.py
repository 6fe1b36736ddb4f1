"""The recorder: windows and alerts in, handed to a writer process that may hang without anybody noticing."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracer.alerts.alert import Alert
from tracer.alerts.record import alert_record
from tracer.blackbox.layout import Geometry, Note
from tracer.blackbox.queue import Sender, State
from tracer.errors import OutputError
from tracer.recording import FrameEncoder, Kind
from tracer.recording.frames import pack_frame
from tracer.window import Window

__all__ = ["DEFAULT_SIZE", "Recorder", "Status"]

DEFAULT_SIZE = 64 << 20
_START = "import sys; sys.path.insert(0, sys.argv[1]); from tracer.blackbox.writer import main; main()"
_START_SECONDS = 10.0
_CLOSE_SECONDS = 2.0
_AGAIN_NS = 10_000_000_000


@dataclass(frozen=True)
class Status:
    """How one path's writing goes. ``dropped``: frames that found no room, because the disk is slow or hangs.

    ``lost``: frames that the disk refused; ``error`` says why. ``behind``: frames not durable yet.
    """

    path: str
    dropped: int
    durable: int
    lost: int
    behind: int
    error: str


class Recorder:
    """A flight recorder at ``path`` and, if given, at ``mirror``, which should be another disk.

    ``header`` is that of a recording. No method waits for a disk, except the constructor, for a few seconds, and
    ``close``, for two. ``notes`` are to be told: what was kept, and what did not answer. Calls may come from several
    threads.
    """

    def __init__(
        self, path: str, size_bytes: int = DEFAULT_SIZE, header: Mapping[str, Any] | None = None, *, mirror: str = ""
    ) -> None:
        """Claim the box and start its writer. Raises OutputError; of a mirror that fails, only a note."""
        header = header or {}
        geometry = Geometry.of_size(size_bytes)
        frame = FrameEncoder().header(header)
        boot_id = str(header.get("boot_id", ""))
        self.notes: list[str] = []
        self._lock = threading.Lock()
        self._lanes = [_Lane(path, geometry, frame, boot_id)]
        self.notes += self._lanes[0].begin()
        if mirror:
            try:
                lane = _Lane(mirror, geometry, frame, boot_id)
                self.notes += lane.begin()
                self._lanes.append(lane)
            except OutputError as error:
                self.notes.append(f"no mirror: {error.message}")
        self._told = self._serial()

    def windows(self, windows: Sequence[Window]) -> None:
        """Record one interval. One that is too large for any recording counts as dropped."""
        try:
            # Each frame by itself: no other one has to be read before it.
            frame = FrameEncoder().windows(windows)
        except OutputError:
            frame = b""
        self._send(frame, Kind.WINDOWS, urgent=False)

    def alert(self, alert: Alert) -> None:
        """Record an alert at once; room is kept for it."""
        self._send(pack_frame(Kind.ALERT, alert_record(alert)), Kind.ALERT, urgent=True)

    def begins_again(self) -> bool:
        """Return whether a segment has begun since this was asked last.

        Dictionaries, such as the stacks' names, should then be told again, so that each segment can be read alone.
        """
        before, self._told = self._told, self._serial()
        return self._told != before

    def status(self) -> list[Status]:
        """Return how it goes, path by path."""
        return [lane.status() for lane in self._lanes]

    def close(self, reason: str = "stopped") -> None:
        """Say goodbye and give the disks two seconds."""
        self._send(pack_frame(Kind.END, {"reason": reason}), Kind.END, urgent=True)
        until = time.monotonic() + _CLOSE_SECONDS
        for lane in self._lanes:
            lane.close()
        for lane in self._lanes:
            lane.wait(until)

    def _send(self, frame: bytes, kind: Kind, *, urgent: bool) -> None:
        with self._lock:
            for lane in self._lanes:
                lane.send(frame, kind, urgent)

    def _serial(self) -> int:
        return self._lanes[0].state().serial


class _Lane:
    """One path: a queue and the process that empties it."""

    def __init__(self, path: str, geometry: Geometry, header: bytes, boot_id: str) -> None:
        self._path = path
        self._geometry = geometry
        self._header = header
        self._boot_id = boot_id
        self._run = secrets.randbits(63)
        self._dropped = self._sent = self._sequence = 0
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
            self.wait(time.monotonic() + _CLOSE_SECONDS)
            raise OutputError(words["error"], hint=words.get("hint", ""))
        return list(words["notes"])

    def send(self, frame: bytes, kind: Kind, urgent: bool) -> None:
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
        return Status(self._path, self._dropped, state.durable, state.lost, behind, error)

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
            # What it had in hand is not coming back.
            gone = self._sent - self._before.durable - self._before.lost
            self._dropped, self._sent = self._dropped + gone, self._sent - gone
            if self._process:
                self._process.poll()
