"""The agent's light windows and the deep ones of the same seconds, as intervals of one recording."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from tracer.window import Window

__all__ = ["joined"]

_COST = ("agent", "cost")
_OWN_ROW = b"agent"


def joined(
    light: Iterable[Sequence[Window]], deep: Sequence[Sequence[Window]], running: Collection[str]
) -> Iterator[list[Window]]:
    """Yield the intervals of ``light``, each with the deep ones that ended when it did; then the others.

    ``running`` are the agent's probes: of those the agent's own windows are taken, not what ran along with the deep
    probes. Whose job a process is was told to the agent long ago, so that is taken from both.
    """
    waiting = [_deep_only(windows, running) for windows in deep]
    for windows in light:
        if not windows:
            continue
        end_ns = max(window.end_ns for window in windows)
        half_ns = max(window.end_ns - window.start_ns for window in windows) // 2
        together = list(windows)
        while waiting and max((window.end_ns for window in waiting[0]), default=0) <= end_ns + half_ns:
            together += waiting.pop(0)
        yield together
    yield from filter(None, waiting)


def _deep_only(windows: Sequence[Window], running: Collection[str]) -> list[Window]:
    kept = [window for window in windows if window.probe not in running or window.probe == "jobs"]
    return kept + [_renamed(window) for window in windows if (window.probe, window.table) == _COST]


def _renamed(cost: Window) -> Window:
    """Return what the deep programs cost under names of their own: an attach point has one of the agent's as well."""
    rows = cost.rows.copy()
    for row in rows:
        if row["program"] != _OWN_ROW:
            row["program"] = b"deep " + bytes(row["program"])
    return replace(cost, rows=rows)
