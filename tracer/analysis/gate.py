"""The one gate for windows: whatever a recording holds, analysis sees known tables with the columns it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from tracer.analysis.shapes import EVENTS, SAMPLES, SHAPES, STACKS, TableName
from tracer.histogram import SLOTS
from tracer.window import Window

__all__ = ["checked", "is_known"]

_HISTOGRAM = ("sum", "slots")
_STACK = ("stack", "depth", "frame")
_FRAME = ("frame", "kind", "module", "symbol")

# What a table says nothing without. Any other column may be missing: from an earlier version, or a later one.
_ESSENTIAL: Final[Mapping[TableName, tuple[str, ...]]] = {
    ("runqueue", "wait"): _HISTOGRAM,
    ("runqueue", "worst"): ("wait_ns", "cpu"),
    ("runqueue_cgroup", "wait"): _HISTOGRAM,
    ("softirq", "delay"): _HISTOGRAM,
    ("softirq", "run"): _HISTOGRAM,
    ("softirq", "worst"): ("duration_ns", "kind", "cpu", "vector"),
    ("hardirq", "run"): _HISTOGRAM,
    ("napi", "poll"): (*_HISTOGRAM, "polls", "work", "full"),
    ("cpustate", "time"): ("running_ns", "idle_ns", "softirq_ns", "hardirq_ns"),
    ("cpustate", "check"): ("made",),
    ("ledger", "time"): ("wall_ns", "running_ns"),
    ("ledger", "taken"): ("kind", "ns"),
    ("cpustall", "stall"): _HISTOGRAM,
    ("cpustall", "feed"): _HISTOGRAM,
    ("cpustall", "stalls"): ("duration_ns", "cpu"),
    ("cpustall", "open"): ("age_ns", "cpu", "kind"),
    ("oncpu", "samples"): ("cpu", "pid", "comm", "weight"),
    ("offcpu", "samples"): ("pid", "comm", "weight"),
    ("oncpu", "stacks"): _STACK,
    ("offcpu", "stacks"): _STACK,
    ("oncpu", "frames"): _FRAME,
    ("offcpu", "frames"): _FRAME,
}
_EVENT_NUMBERS = (
    *("time_ns", "wait_ns", "duration_ns", "since_ns", "age_ns", "feed_ns", "cpu", "waited_cpu", "pid", "tgid"),
    *(
        "holder_pid",
        "holder_tgid",
        "holder_prio",
        "holder_ns",
        "holders",
        "task_ns",
        "idle_ns",
        "softirq_ns",
        "hardirq_ns",
    ),
    *("covered_ns", "kind", "vector", "evidence", "weight"),
)
_NAMES = frozenset({"comm", "cgroup", "holder_comm", "holder_cgroup", "context"})
_KEY_NAMES = frozenset(
    {"name", "device", "program", "cgroup", "driver", "state", "netdev", "link_layer", "comm", "kind"}
)


def is_known(name: TableName) -> bool:
    """Return whether a table is one of those that have a meaning here."""
    return name in SHAPES or name in EVENTS or name in SAMPLES or name in STACKS


def checked(window: Window) -> tuple[Window, str]:
    """Return ``window`` with columns that can be read, and why its rows can't be used: empty when they can.

    A window that is refused keeps its time and its losses, and has no rows. Missing columns of no rows do no harm.
    """
    dtype = window.rows.dtype
    why, usable = _verdict((window.probe, window.table), dtype, bool(window.rows.shape[0]))
    if why:
        return replace(window, rows=np.zeros(0, np.dtype([("cpu", "u4")]))), why
    if len(usable) == len(dtype.names or ()):
        return window, ""
    return replace(window, rows=window.rows[list(usable)]), ""


@lru_cache(maxsize=256)
def _verdict(name: TableName, dtype: np.dtype, filled: bool) -> tuple[str, tuple[str, ...]]:
    """Return why rows of ``dtype`` are no rows of the table, and which of their columns are kept."""
    columns = {column: dtype[column] for column in dtype.names or ()}
    expected = _expected(name, "slots" in columns)
    for column, kind in columns.items():
        if column in expected and not _fits(kind, expected[column]):
            return f"column {column} is not {_WORDS[expected[column]]}", ()
    if filled and (missing := [column for column in _essential(name, "slots" in columns) if column not in columns]):
        return f"column {missing[0]} is missing", ()
    return "", tuple(column for column, kind in columns.items() if column in expected or _is_plain(kind))


def _expected(name: TableName, histogram: bool) -> dict[str, str]:
    found = {"sum": "sum", "slots": "slots"} if histogram or name in _ESSENTIAL else {}
    if name in SHAPES:
        shape = SHAPES[name]
        for column in (*shape.keys, *shape.sums, *shape.gauges):
            found[column] = "name" if column in _KEY_NAMES else "number"
    elif name in EVENTS or name in SAMPLES:
        found |= dict.fromkeys(_EVENT_NUMBERS, "number") | dict.fromkeys(_NAMES, "name")
        if name == ("cpustall", "open"):
            found["kind"] = "name"
        if name in SAMPLES:
            found |= dict.fromkeys(("stack", "tid", "waker_vector", "count"), "number")
            found |= dict.fromkeys(("waker_kind", "waker_comm"), "name")
    elif name in STACKS:
        found |= dict.fromkeys(_STACK, "number") | dict.fromkeys((*_FRAME[1:], "build_id"), "name")
    elif histogram:
        found["cpu"] = "number"
    return found


def _essential(name: TableName, histogram: bool) -> tuple[str, ...]:
    keys = SHAPES[name].keys if name in SHAPES else ()
    return (*keys, *_ESSENTIAL.get(name, _HISTOGRAM if histogram else ()))


def _fits(kind: np.dtype, expected: str) -> bool:
    if expected == "slots":
        return kind.shape == (SLOTS,) and kind.base.kind == "u"
    return kind.shape == () and kind.kind in {"sum": "u", "number": "ui", "name": "S"}[expected]


def _is_plain(kind: np.dtype) -> bool:
    return kind.shape == () and kind.kind in "uifbS"


_WORDS = {"sum": "a number", "slots": f"{SLOTS} counts", "number": "a whole number", "name": "a name"}
