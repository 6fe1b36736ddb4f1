"""Kills for lack of memory as three sources tell them: the kernel's count, its tracepoint, its log."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.alerts import precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Severity
from tracer.alerts.histories import recent, total
from tracer.alerts.logpatterns import LINES, Found, found_in
from tracer.alerts.rule import View
from tracer.window import Window

__all__ = ["EFFORT", "INFO", "lines", "severity", "unnamed"]

INFO, EFFORT = ("memory", "info"), ("memory", "effort")
_KIND, _RULE = "oom_kill", "oom-victim"


def severity(view: View, killing: Sequence[Window] | None = None) -> tuple[Severity, float]:
    """Return how bad the kills of the last minute (or of ``killing``) are, and how many bytes are left now.

    With memory left, or where nobody had to wait for it, a cgroup has reached its own limit.
    """
    info = view.windows.get(INFO)
    if killing is None:
        killing = _killing(view)
    if info is None or not len(info.rows):
        return Severity.INFO, 0.0
    size, left = (float(info.rows[name][0]) for name in ("total", "available"))
    if not total(killing, "allocation_stalls") or left >= limits.OOM_LEFT * size:
        return Severity.INFO, left
    many = total(killing, "oom_kills") >= limits.OOM_KILLS_PAGE
    return Severity.PAGE if many else Severity.WARNING, left


def unnamed(view: View) -> list[Window]:
    """Return the intervals of the last minute with kills that only the count tells.

    The tracepoint and the log may be an interval early or late: the latest interval is judged with the next.
    """
    killing = _killing(view)
    if not killing:
        return []
    if precursors.TOLD not in view.windows and LINES not in view.windows:
        return killing
    named = _named_ns(view)
    return [window for window in killing if window.end_ns < view.now_ns and not _near(window, named)]


def lines(view: View) -> list[Found]:
    """Return the log's lines about kills of this interval and the one before, once they can be told.

    What the tracepoint will have told by the next interval waits for that: it is the one that sentinels see, too.
    """
    windows = view.history.get(LINES) or [window for window in [view.windows.get(LINES)] if window is not None]
    before, latest = (
        [line for window in part for line in found_in(window, _RULE)] for part in (windows[-2:-1], windows[-1:])
    )
    if not before and not latest:
        return []
    last = any(line.severity is Severity.PAGE for line in latest)
    spoken = len(precursors.lately(view, _KIND, 2 * _interval_ns(view)))
    waits = precursors.TOLD in view.windows and not spoken and not last and not before
    return [] if waits else [*before, *latest]


def _killing(view: View) -> list[Window]:
    windows, _ = recent(view, EFFORT, limits.RECENT_NS)
    return [window for window in windows if total([window], "oom_kills")]


def _named_ns(view: View) -> list[int]:
    times = [int(row["time_ns"]) for row in precursors.lately(view, _KIND, 2 * limits.RECENT_NS)]
    for window in view.history.get(LINES, ()):
        if len(window.rows) and window.end_ns > view.now_ns - 2 * limits.RECENT_NS:
            times += [line.time_ns for line in found_in(window, _RULE)]
    return times


def _near(window: Window, times: Sequence[int]) -> bool:
    length_ns = window.end_ns - window.start_ns
    return any(window.start_ns - length_ns <= time_ns <= window.end_ns + length_ns for time_ns in times)


def _interval_ns(view: View) -> int:
    window = view.windows[precursors.TOLD] if precursors.TOLD in view.windows else view.windows[LINES]
    return window.end_ns - window.start_ns
