"""What the agent saw lately, in memory, as frames: the seconds before an alert."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence

from tracer.errors import OutputError
from tracer.recording import FrameEncoder
from tracer.window import Window

__all__ = ["Ring", "encoded"]

#: On a node with 256 CPUs a busy second is 200 KB.
_MOST_BYTES = 16 << 20


def encoded(windows: Sequence[Window]) -> bytes:
    """Return the frame of an interval, to be read alone; b"" of one that is too large for any recording."""
    try:
        return FrameEncoder().windows(windows)
    except OutputError:
        return b""


class Ring:
    """The frames of the last intervals, each to be read alone, as far as they have room in ``most_bytes``."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._frames: deque[tuple[int, bytes]] = deque()
        self.size = 0

    def add(self, end_ns: int, frame: bytes) -> None:
        """Keep an interval's frame; b"" is one that could not be made."""
        self._frames.append((end_ns, frame))
        self.size += len(frame)
        while self.size > self._most:
            self._forget()

    def forget_before(self, end_ns: int) -> None:
        """Forget the intervals that ended earlier."""
        while self._frames and self._frames[0][0] < end_ns:
            self._forget()

    def written(self) -> int:
        """Return a descriptor of memory that holds all frames, at its beginning; the caller's. Raises OSError."""
        descriptor = os.memfd_create("foreshock-before", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                for _, frame in self._frames:
                    file.write(frame)
            os.lseek(descriptor, 0, os.SEEK_SET)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _forget(self) -> None:
        self.size -= len(self._frames.popleft()[1])
