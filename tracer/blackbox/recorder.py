"""The recorder: windows and alerts in, handed to a writer process that may hang without anybody noticing."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tracer.alerts.alert import Alert
from tracer.alerts.record import alert_record
from tracer.blackbox.lane import Lane, Status
from tracer.blackbox.layout import BLOCK, DEFAULT_SIZE, LEAST_SIZE, MOST_SIZE, Geometry, blocks_of
from tracer.errors import OutputError
from tracer.recording import FrameEncoder, Kind
from tracer.recording.frames import pack_frame
from tracer.window import Window

__all__ = ["DEFAULT_SIZE", "Recorder", "Status"]

_CLOSE_SECONDS = 2.0


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
        needed = 2 * blocks_of(len(frame)) * BLOCK
        if needed > geometry.segment_bytes:
            raise OutputError(
                f"black box {path}: {size_bytes} bytes are too few for this node's description in each of its parts.",
                hint=f"for example --blackbox-size {_large_enough(needed) >> 10}KiB",
            )
        boot_id = str(header.get("boot_id", ""))
        self.notes: list[str] = []
        self._lock = threading.Lock()
        self._lanes = [Lane(path, geometry, frame, boot_id)]
        self.notes += self._lanes[0].begin()
        if mirror:
            try:
                lane = Lane(mirror, geometry, frame, boot_id)
                self.notes += lane.begin()
                self._lanes.append(lane)
            except OutputError as error:
                self.notes.append(f"no mirror: {error.message}")
        self._told = self._serial()

    def windows(self, windows: Sequence[Window]) -> bytes:
        """Record one interval, and return its frame. One that is too large for any recording counts as dropped: b""."""
        try:
            # Each frame by itself: no other one has to be read before it.
            frame = FrameEncoder().windows(windows)
        except OutputError:
            frame = b""
        self._send(frame, Kind.WINDOWS, urgent=False)
        return frame

    def alert(self, alert: Alert) -> None:
        """Record an alert at once; room is kept for it. One that is too large counts as dropped."""
        try:
            frame = pack_frame(Kind.ALERT, alert_record(alert))
        except ValueError:
            frame = b""
        self._send(frame, Kind.ALERT, urgent=True)

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


def _large_enough(segment_bytes: int) -> int:
    """Return the first size, of those that double, whose segments have ``segment_bytes``."""
    size = LEAST_SIZE
    while size < MOST_SIZE and Geometry.of_size(size).segment_bytes < segment_bytes:
        size *= 2
    return size
