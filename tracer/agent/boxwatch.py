"""How the black box's writing goes, in words: now, and when it gets worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracer import units
from tracer.blackbox.recorder import Status

__all__ = ["BoxWatch", "in_words"]

#: Frames that are not durable yet: a sound disk has none for longer than an interval.
_BEHIND = 8


class BoxWatch:
    """Notes what gets worse: at its beginning, and each time it has doubled, so that no disk fills a log."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], int] = {}

    def notes(self, statuses: Sequence[Status]) -> Iterator[str]:
        """Yield a line per path that is worse than when it was told last."""
        for status in statuses:
            worse = [self._worse(status, name, least) for name, least in _LEAST.items()]
            if any(worse):
                yield f"black box {status.path}: {in_words(status)}"

    def _worse(self, status: Status, name: str, least: int) -> bool:
        number, key = getattr(status, name), (status.path, name)
        if number < max(least, 2 * self._said.get(key, 0)):
            return False
        self._said[key] = number
        return True


_LEAST = {"dropped": 1, "lost": 1, "behind": _BEHIND, "died": 1}


def in_words(status: Status) -> str:
    """Return how it goes in one phrase, with the kernel's reason if the disk refused."""
    reason = f" ({status.error})" if status.error else ""
    died = f", {units.many(status.died, 'writer')} died and started anew" if status.died else ""
    return f"{status.dropped} dropped, {status.lost} lost{reason}, {status.behind} behind{died}"
