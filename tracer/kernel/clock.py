"""How this node's monotonic clock, which all times are of, relates to UTC."""

from __future__ import annotations

import time

__all__ = ["Offset", "offset_ns"]

#: Both clocks are slewed alike, so that the offset moves only when the time is set and over a suspend.
_MOVED_NS = 1_000_000


class Offset:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, watched."""

    def __init__(self) -> None:
        self._known_ns = offset_ns()[0]

    def moved(self) -> list[int]:
        """Return the offset if it is another one than at the last call, in a list; else nothing."""
        now_ns, doubt_ns = offset_ns()
        if abs(now_ns - self._known_ns) < _MOVED_NS + doubt_ns:
            return []
        self._known_ns = now_ns
        return [now_ns]


def offset_ns() -> tuple[int, int]:
    """Return CLOCK_REALTIME minus CLOCK_MONOTONIC, and by how much that may be wrong: the better of three readings."""
    readings = []
    for _ in range(3):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, real - (before + after) // 2))
    doubt, offset = min(readings)
    return offset, doubt
