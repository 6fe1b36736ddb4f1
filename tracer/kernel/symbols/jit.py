"""Functions that a process compiled while it ran, as it tells them itself: /tmp/perf-PID.map.

The convention of perf: lines of start and size in hexadecimal and a name. Python (with ``-X perf``), Node.js and
Java agents write such files. Their author is the watched process, so nothing in them is believed beyond its frames.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right

__all__ = ["MAX_BYTES", "JitMap"]

#: Of a longer file the beginning counts.
MAX_BYTES = 8 << 20

_MAX_NAME = 192


class JitMap:
    """One perf map, read once; ``stamp`` tells a later version of the file."""

    def __init__(self, text: bytes, stamp: tuple[int, int] = (0, 0)) -> None:
        self.stamp = stamp
        # A function that was compiled again has a later line with the same start.
        found: dict[int, tuple[int, bytes]] = {}
        for line in text.splitlines():
            fields = line.split(None, 2)
            try:
                found[int(fields[0], 16)] = int(fields[1], 16), fields[2][:_MAX_NAME]
            except (ValueError, IndexError):
                continue
        self._starts = sorted(found)
        self._found = found

    @classmethod
    def of(cls, proc: str, pid: int, uid: int, known: JitMap | None) -> JitMap | None:
        """Return the map of the process behind ``proc`` (/proc/PID), ``known`` if that's still the same file.

        ``pid`` is its own in its namespace. None without a regular file that belongs to ``uid`` (or to root).
        """
        try:
            path = f"{proc}/root/tmp/perf-{pid}.map"
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode) or about.st_uid not in (uid, 0):
                return None
            stamp = about.st_ino, about.st_size
            return known if known and known.stamp == stamp else cls(file.read(MAX_BYTES), stamp)

    def resolve(self, address: int) -> bytes:
        """Return the function at an address, empty for none."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return b""
        size, name = self._found[self._starts[place]]
        return name if address - self._starts[place] < size else b""
