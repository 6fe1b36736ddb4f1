"""One line for each kind of trouble with what arrives, however much of it arrives."""

from __future__ import annotations

from collections.abc import Callable

from tracer.escape import printable
from tracer.fleet.bucket import Bucket

__all__ = ["Complaints"]

_BURST = 8.0
_PER_SECOND = 0.2
_MOST_TEXT = 300


class Complaints:
    """Says a line of each kind at most ``_BURST`` times at once and ``_PER_SECOND`` on average; counts the others."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.total = 0
        self._say = say
        self._kinds: dict[str, Bucket] = {}

    def add(self, kind: str, text: str, now_ns: int) -> None:
        """Say ``text``, unless there was too much of this ``kind``, of which there are few."""
        self.total += 1
        bucket = self._kinds.setdefault(kind, Bucket(_BURST, _PER_SECOND, now_ns))
        if bucket.takes(now_ns):
            more = f" ({bucket.refused} more like this)" if bucket.refused else ""
            bucket.refused = 0
            self._say(f"{printable(text[:_MOST_TEXT])}{more}")
