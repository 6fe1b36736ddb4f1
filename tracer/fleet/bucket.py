"""So much at once and so much on average: a token bucket."""

from __future__ import annotations

__all__ = ["Bucket"]


class Bucket:
    """Lets ``burst`` pass at once and ``per_second`` on average; ``refused`` counts the rest."""

    def __init__(self, burst: float, per_second: float, now_ns: int) -> None:
        self.per_second = per_second
        self.refused = 0
        self._burst = self._left = burst
        self._at_ns = now_ns

    def takes(self, now_ns: int) -> bool:
        """Return whether one more may pass."""
        self._left = min(self._burst, self._left + (now_ns - self._at_ns) / 1e9 * self.per_second)
        self._at_ns = now_ns
        if self._left < 1:
            self.refused += 1
            return False
        self._left -= 1
        return True
