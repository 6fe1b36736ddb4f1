"""What the records of a box come to, and the frame in each."""

from __future__ import annotations

import io
from typing import Any

from tracer.blackbox.layout import RecordHead
from tracer.blackbox.scan import Found
from tracer.errors import RecordingError
from tracer.recording import Frame, FrameCut, FrameDecoder, Kind, read_frame
from tracer.recording.payload import unpack_payload

__all__ = ["Tally", "frame_of"]


class Tally:
    """What the records come to, one after the other. ``whole_since_ns``: what is missing before was written over."""

    def __init__(self, whole_since_ns: int = 0) -> None:
        self._whole_since_ns = whole_since_ns
        self.first: RecordHead | None = None
        self.last: RecordHead | None = None
        self.starts = self.gaps = self.dropped = 0
        self.boot_id = ""
        self._run = -1
        self._in_run = 0
        self._next: int | None = None
        self._header: Found | None = None
        self._end: Found | None = None

    def add(self, found: Found) -> None:
        """Add the next record."""
        head = found.head
        if found.segment.run != self._run:
            self._run, self.boot_id = found.segment.run, found.segment.boot_id
            self.starts += 1
            self._in_run, self._next = 0, None
        self.dropped += max(0, head.dropped - self._in_run)
        self._in_run = max(head.dropped, self._in_run)
        self.first, self.last = self.first or head, head
        if head.kind == Kind.HEADER:
            self._header = found
            return
        self._end = found if head.kind == Kind.END else None
        if self._next is not None and head.monotonic_ns > self._whole_since_ns:
            self.gaps += max(0, head.sequence - self._next)
        self._next = head.sequence + 1

    def header(self) -> dict[str, Any]:
        """Return the latest run's header; empty when it can't be read."""
        if self._header is None:
            return {}
        try:
            return FrameDecoder().header(frame_of(self._header))
        except RecordingError:
            return {}

    def goodbye(self) -> str | None:
        """Return the reason of the goodbye, if that is the last record."""
        if self._end is None:
            return None
        try:
            return str(unpack_payload(frame_of(self._end).payload)[0].get("reason", ""))
        except RecordingError:
            return ""


def frame_of(found: Found) -> Frame:
    """Return the record's frame. Raises RecordingError when it is none, or not the one that the head says."""
    try:
        frame = read_frame(io.BytesIO(found.frame).read)
    except FrameCut as cut:
        raise RecordingError(cut.message) from None
    if frame is None or frame.kind != found.head.kind:
        raise RecordingError("a record holds another frame than it says.")
    return frame
