"""Functions that a process compiled while it ran, as it tells them itself: /tmp/perf-PID.map.

The convention of perf: lines of start and size in hexadecimal and a name. Python (with ``-X perf``), Node.js and
Java agents write such files, and go on writing. Their author is the watched process, so nothing in them is believed
beyond its frames.
"""

from __future__ import annotations

import os
from bisect import bisect_right

from tracer.kernel.symbols.demangle import demangled
from tracer.kernel.symbols.elf import MAX_NAME
from tracer.kernel.symbols.opening import open_regular

__all__ = ["MAX_BYTES", "JitMap"]

#: Of a longer file the beginning counts.
MAX_BYTES = 8 << 20


class JitMap:
    """One perf map, read as it grows."""

    def __init__(self, text: bytes = b"") -> None:
        self._file: tuple[int, int] | None = None
        self._read = 0
        self._rest = b""
        self._starts: list[int] = []
        self._found: dict[int, tuple[int, bytes]] = {}
        self._add(text)

    @classmethod
    def of(cls, proc: str, pid: int, uid: int, known: JitMap | None) -> JitMap | None:
        """Return the map of the process behind ``proc`` (/proc/PID); ``known`` with what is new, if it's that file.

        ``pid`` is its own in its namespace. None without a regular file that belongs to ``uid`` (or to root).
        """
        try:
            file = os.fdopen(open_regular(f"{proc}/root/tmp/perf-{pid}.map".encode(), follow=False), "rb")
        except OSError:
            return None
        with file:
            about = os.fstat(file.fileno())
            if about.st_uid not in (uid, 0):
                return None
            which = about.st_dev, about.st_ino
            if known is None or known._file != which or about.st_size < known._read:
                known = cls()
                known._file = which
            file.seek(known._read)
            known._add(file.read(max(0, MAX_BYTES - known._read)))
            return known

    def resolve(self, address: int) -> bytes:
        """Return the function at an address, empty for none."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return b""
        size, name = self._found[self._starts[place]]
        return demangled(name)[:MAX_NAME] if address - self._starts[place] < size else b""

    def _add(self, text: bytes) -> None:
        if not text:
            return
        self._read += len(text)
        # The last line may not be whole yet. A function that was compiled again has a later line with the same start.
        lines = (self._rest + text).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            fields = line.split(None, 2)
            try:
                self._found[int(fields[0], 16)] = int(fields[1], 16), fields[2][: 4 * MAX_NAME]
            except (ValueError, IndexError):
                continue
        self._starts = sorted(self._found)
