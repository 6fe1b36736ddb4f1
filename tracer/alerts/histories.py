"""Earlier windows of small tables, as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from tracer.alerts.rule import View
from tracer.units import SECOND
from tracer.window import Window

__all__ = ["latest", "recent", "series", "total"]

_Floats = npt.NDArray[np.float64]


def recent(view: View, table: tuple[str, str], span_ns: int) -> tuple[list[Window], float]:
    """Return the windows with rows of the last ``span_ns``, and how many seconds they cover together."""
    first_ns = view.now_ns - span_ns - SECOND // 2
    windows = [window for window in latest(view, table, lambda window: window.start_ns >= first_ns) if len(window.rows)]
    return windows, sum(window.seconds for window in windows)


def latest(view: View, table: tuple[str, str], wanted: Callable[[Window], bool]) -> list[Window]:
    """Return the latest windows up to the first that is not ``wanted``, oldest first: few of all that are kept."""
    return [*takewhile(wanted, reversed(view.history.get(table, ())))][::-1]


def total(windows: Sequence[Window], column: str) -> float:
    """Return the sum of a column of tables with one row; a column that this kernel lacks adds nothing."""
    return float(sum(int(window.rows[column][0]) for window in windows if column in (window.rows.dtype.names or ())))


def series(windows: Sequence[Window], columns: tuple[str, ...]) -> tuple[_Floats, _Floats]:
    """Return the times in s and the sums of some columns, those that this kernel has."""
    ends = np.array([window.end_ns for window in windows], "f8") / SECOND
    sums = [sum(float(w.rows[name][0]) for name in columns if name in (w.rows.dtype.names or ())) for w in windows]
    return ends, np.array(sums)
