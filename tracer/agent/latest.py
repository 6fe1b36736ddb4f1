"""The latest of what one process writes now and then and those that it forked read, none of them ever waiting."""

from __future__ import annotations

import mmap

import numpy as np

__all__ = ["Latest"]

_HEAD = 4096


class Latest:
    """Bytes in memory that every process forked later has, too, in two places that are written in turn.

    ``most`` of them fit; what is not written to takes no memory.
    """

    def __init__(self, most: int) -> None:
        self._most = -(-most // _HEAD) * _HEAD
        self._memory = memoryview(mmap.mmap(-1, _HEAD + 2 * self._most))
        # How often it was written, and the lengths of both.
        self._control = np.frombuffer(self._memory, "u8", 3)

    @property
    def number(self) -> int:
        """How often it was written: as long as that is the same, so is what ``read`` has returned."""
        return int(self._control[0])

    def write(self, data: bytes) -> bool:
        """Make ``data`` the latest; False when it is too long. One process alone calls this."""
        if len(data) > self._most:
            return False
        place = (self.number + 1) & 1
        start = _HEAD + place * self._most
        self._memory[start : start + len(data)] = data
        self._control[1 + place] = len(data)
        self._control[0] += 1  # last
        return True

    def read(self) -> tuple[int, memoryview]:
        """Return the number and the latest bytes, not a copy; after the next write but one they are others."""
        number = self.number
        place = number & 1
        start = _HEAD + place * self._most
        return number, self._memory[start : start + int(self._control[1 + place])].toreadonly()
