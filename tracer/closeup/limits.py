"""Whether a node is in a state in which more may be attached to it. Views in, a reason out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tracer import units
from tracer.alerts.alert import Alert
from tracer.alerts.rule import View

__all__ = ["objection"]

#: Maps of the deep probes take 65 MB, the report up to half a GiB.
_LEAST_MEMORY = 1 << 30
#: Tasks that wait for each CPU, on average over an interval.
_MOST_WAITING = 16.0
#: The deep probes take 1 µs of each switch where there are so many: a tenth of each CPU. docs/closeups.md.
_MOST_SWITCHES = 100_000.0
#: Attaching waits for every CPU, and has its own wait with it: the ages of what has not ended.
_STUCK = (b"stall", b"softirq", b"hardirq", b"heartbeat")
_STUCK_NS = 500_000_000


def objection(view: View, firing: Iterable[Alert]) -> str:
    """Return why nothing should be attached now, in a few words; "" if it may."""
    if any(alert.says_panic for alert in firing):
        return "a countdown to a panic runs, and nothing may come in its alerts' way"
    return _stuck(view) or _crowded(view) or _busy(view) or _short_of_memory(view)


def _rows(view: View, probe: str, table: str) -> tuple[np.ndarray | None, float]:
    """Return the latest rows of a table, None without any, and its window's seconds."""
    window = view.windows.get((probe, table))
    if window is None or not len(window.rows):
        return None, 0.0
    return window.rows, max(1, window.end_ns - window.start_ns) / 1e9


def _stuck(view: View) -> str:
    rows, _ = _rows(view, "cpustall", "open")
    if rows is None:
        return ""
    stuck = rows["cpu"][np.isin(rows["kind"], _STUCK) & (rows["age_ns"] >= _STUCK_NS)]
    return f"CPU {stuck[0]} is stuck, and attaching would wait for it" if len(stuck) else ""


def _crowded(view: View) -> str:
    rows, seconds = _rows(view, "runqueue", "wait")
    if rows is None:
        return ""
    waiting = float(rows["sum"].sum()) / 1e9 / seconds / len({*rows["cpu"].tolist()})
    return f"{waiting:.0f} tasks wait for each CPU" if waiting > _MOST_WAITING else ""


def _busy(view: View) -> str:
    rows, seconds = _rows(view, "runqueue", "wait")
    if rows is None:
        return ""
    # A wait is what precedes a switch.
    switches = float(rows["slots"].sum()) / seconds / len({*rows["cpu"].tolist()})
    return f"{units.count(round(switches))} switches a second on each CPU" if switches > _MOST_SWITCHES else ""


def _short_of_memory(view: View) -> str:
    rows, _ = _rows(view, "memory", "info")
    left = None if rows is None or "available" not in (rows.dtype.names or ()) else int(rows["available"][-1])
    return f"{units.memory(left)} of memory are left" if left is not None and left < _LEAST_MEMORY else ""
