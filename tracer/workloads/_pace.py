"""Spread work over time in small portions."""

from __future__ import annotations

import time
from collections.abc import Iterator

__all__ = ["portions"]

_TICK_SECONDS = 0.01


def portions(total: int, per_second: float) -> Iterator[int]:
    """Yield numbers that add up to ``total``, a hundred a second at most; all at once if ``per_second`` is 0."""
    began = time.monotonic()
    done = 0
    while done < total:
        due = min(total, int((time.monotonic() - began + _TICK_SECONDS) * per_second)) if per_second else total
        if due > done:
            yield due - done
            done = due
        if done < total:
            time.sleep(_TICK_SECONDS)
