"""Who had the CPU during one long wait, a row of ``runqueue.worst``; missing columns count as 0, or as all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracer.analysis.blame import MAIN_SHARE

__all__ = ["covered_ns", "is_seen", "main_part"]

_OTHERS = ("idle_ns", "softirq_ns", "hardirq_ns")


def covered_ns(event: Mapping[str, Any]) -> int:
    """Return how much of the wait the CPU's log covers."""
    return int(event.get("covered_ns", event.get("wait_ns", 0)))


def is_seen(event: Mapping[str, Any]) -> bool:
    """Return whether that is enough: else who had the little that is known need not have had the rest."""
    return covered_ns(event) >= MAIN_SHARE * int(event.get("wait_ns", 0))


def main_part(event: Mapping[str, Any]) -> tuple[str, int]:
    """Return the column of what had the CPU for longest, and for how long; ``""`` if nobody is known to have had it.

    The columns: ``holder_ns`` (a task), ``idle_ns``, ``softirq_ns``, ``hardirq_ns``.
    """
    times = {name: int(event.get(name, 0)) for name in ("holder_ns", *_OTHERS)}
    most = max(times, key=lambda name: times[name])
    return (most, times[most]) if times[most] else ("", 0)
