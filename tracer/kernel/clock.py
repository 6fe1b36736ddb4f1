"""How this node's monotonic clock, which all times are of, relates to UTC."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["HOST_TIME", "Offset", "in_host_time", "offset_ns"]

#: What to do in another time namespace.
HOST_TIME = "run it outside: nsenter --target 1 --time foreshock …, where process 1 is the node's"

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


def in_host_time() -> bool:
    """Return whether clocks here are those of the kernel's programs: not so in a time namespace that moves them."""
    try:
        lines = Path("/proc/self/timens_offsets").read_text().splitlines()
    except OSError:
        return True  # before v5.6, or no such namespaces in this kernel
    return all(set(line.split()[1:]) == {"0"} for line in lines)


def offset_ns() -> tuple[int, int]:
    """Return CLOCK_REALTIME minus CLOCK_MONOTONIC, and by how much that may be wrong: the better of three readings."""
    readings = []
    for _ in range(3):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, real - (before + after) // 2))
    doubt, offset = min(readings)
    return offset, doubt
