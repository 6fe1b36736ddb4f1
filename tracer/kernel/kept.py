"""Files of /proc and /sys that are read again and again: opened once, which is most of the cost of a read.

A descriptor also outlives the privileges it was opened with.
"""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["Kept"]

_BLOCK = 65536
_MOST = 1 << 20


class Kept:
    """One file, kept open. A file that cannot be opened has no content, now and later."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        with suppress(OSError):
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes | None:
        """Return the content as it is now, at most 1 MiB of it; None when it can't be read."""
        if self._fd < 0:
            return None
        parts: list[bytes] = []
        length = 0
        try:
            # A record file says a page or so at a time. A short answer may be the last: only an empty one is the end.
            while length < _MOST and (part := os.pread(self._fd, _BLOCK, length)):
                parts.append(part)
                length += len(part)
        except OSError:
            return None
        return b"".join(parts)

    def number(self) -> int | None:
        """Return the content as a decimal number; None when it can't be read or is something else."""
        if self._fd < 0:
            return None
        try:
            return int(os.pread(self._fd, 32, 0))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
