"""The kernel's log, line by line from /dev/kmsg. Source: Documentation/ABI/testing/dev-kmsg.

Only what the kernel itself has written: a line that a process writes to /dev/kmsg never has the kernel's facility, 0.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Line", "Source", "parse_line", "refusal"]

Read = tuple[np.ndarray, dict[str, int]]

_PATH = "/dev/kmsg"
_LINE = np.dtype([("time_ns", "u8"), ("serial", "u8"), ("level", "u1"), ("count", "u4"), ("text", "S240")])
_NONE = np.zeros(0, _LINE)
_RECORD = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;([^\n]*)")
_NUMBERS = re.compile(rb"0x[0-9a-f]+|[0-9a-f]*\d[0-9a-f]*")

#: Lines read per interval, at 10 µs each; the others wait in the kernel's own ring.
_MOST_READ = 1000
#: Different lines told per interval; after those, ones that differ from the others in more than numbers.
_MOST_TOLD, _SPARE = 128, 64
_LONGEST = 8192  # CONSOLE_EXT_LOG_MAX


class Line(NamedTuple):
    """One line: its number since boot, level (0 emergency … 7 debug), time by the log's own clock, text."""

    serial: int
    level: int
    logged_ns: int
    text: bytes


def parse_line(record: bytes) -> Line | None:
    """Return a record's line; None for one that a process wrote, or that is none."""
    match = _RECORD.match(record)
    if not match or int(match[1]) >> 3:
        return None
    return Line(int(match[2]), int(match[1]) & 7, int(match[3]) * 1000, match[4])


def refusal() -> str:
    """Return why a source can't start in this process; "" if it can."""
    try:
        os.close(_open())
    except OSError as error:
        return f"the kernel's log ({_PATH}) can't be read: {error.strerror} (it needs CAP_SYSLOG)"
    return ""


class Source:
    """The table ``kernellog.lines``: what was logged since the last read, from the moment of construction on."""

    def __init__(self, settings: dict[str, Any]) -> None:
        del settings
        self._fd = -1
        self._serial = -1
        self._read_ns = 0
        try:
            self._fd = _open()
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:
            self.close()

    def read(self, now_ns: int) -> dict[str, Read]:
        """Return ``{table: (rows, losses)}``.

        ``lost``: overwritten before they were read; ``left_out``: read, and not told for want of room; ``unread``: the
        log can't be read at all.
        """
        lines = _Lines()
        losses = {"lost": 0, "left_out": 0, "unread": int(self._fd < 0)}
        for _ in range(_MOST_READ):
            record = self._next()
            if record is None:
                break
            losses["lost"] += self._missed(record)
            line = parse_line(record)
            if line and not lines.add(line):
                losses["left_out"] += 1
        begun_ns, self._read_ns = self._read_ns, now_ns
        return {"lines": (lines.rows(begun_ns, now_ns), losses)}

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _next(self) -> bytes | None:
        """Return the next record; None when there is none yet."""
        while self._fd >= 0:
            try:
                return os.read(self._fd, _LONGEST)
            except OSError as error:
                # EPIPE: the record was overwritten; the next read goes on with the oldest that is left.
                if error.errno != errno.EPIPE:
                    return None
        return None

    def _missed(self, record: bytes) -> int:
        """Return how many records lie between the last one and this one."""
        match = _RECORD.match(record)
        if not match:
            return 0
        before, self._serial = self._serial, int(match[2])
        return max(0, self._serial - before - 1) if before >= 0 else 0


class _Lines:
    """The lines of one interval: equal ones once, with their number."""

    def __init__(self) -> None:
        self._lines: dict[bytes, Line] = {}
        self._counts: dict[bytes, int] = {}
        self._shapes: set[bytes] = set()

    def add(self, line: Line) -> bool:
        """Return whether there was room. A storm of lines of one shape leaves room for others."""
        if line.text not in self._lines:
            shape = _NUMBERS.sub(b"#", line.text)
            room = _MOST_TOLD + (_SPARE if shape not in self._shapes else 0)
            if len(self._lines) >= room:
                return False
            self._lines[line.text] = line
            self._shapes.add(shape)
        self._counts[line.text] = self._counts.get(line.text, 0) + 1
        return True

    def rows(self, begun_ns: int, now_ns: int) -> np.ndarray:
        """Return the rows, in the order of the log.

        The log's clock is not disciplined as CLOCK_MONOTONIC is: a time that is not of the interval becomes its end.
        """
        if not self._lines:
            return _NONE
        rows = np.zeros(len(self._lines), dtype=_LINE)
        for row, line in zip(rows, self._lines.values(), strict=True):
            row["time_ns"] = line.logged_ns if begun_ns <= line.logged_ns <= now_ns else now_ns
            row["serial"], row["level"], row["text"] = line.serial, line.level, line.text
            row["count"] = self._counts[line.text]
        return rows


def _open() -> int:
    return os.open(_PATH, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
