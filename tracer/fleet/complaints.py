"""One line for each kind of trouble with what arrives, however much of it arrives."""

from __future__ import annotations

from collections.abc import Callable

from tracer.escape import printable

__all__ = ["Complaints"]

_BURST = 8.0
_PER_SECOND = 0.2
_MOST_TEXT = 300


class Complaints:
    """Says a line of each kind at most ``_BURST`` times at once and ``_PER_SECOND`` on average; counts the others."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.total = 0
        self._say = say
        self._kinds: dict[str, _Bucket] = {}

    def add(self, kind: str, text: str, now_ns: int) -> None:
        """Say ``text``, unless there was too much of this ``kind``, of which there are few."""
        self.total += 1
        bucket = self._kinds.setdefault(kind, _Bucket(now_ns))
        if bucket.takes(now_ns):
            more = f" ({bucket.swallowed} more like this)" if bucket.swallowed else ""
            bucket.swallowed = 0
            self._say(f"{printable(text[:_MOST_TEXT])}{more}")


class _Bucket:
    def __init__(self, now_ns: int) -> None:
        self.swallowed = 0
        self._left, self._at_ns = _BURST, now_ns

    def takes(self, now_ns: int) -> bool:
        self._left = min(_BURST, self._left + (now_ns - self._at_ns) / 1e9 * _PER_SECOND)
        self._at_ns = now_ns
        if self._left < 1:
            self.swallowed += 1
            return False
        self._left -= 1
        return True
