"""What the kernel said by tracepoint, as rules ask for it: rows of ``precursors.told`` by kind."""

from __future__ import annotations

import numpy as np

from tracer.alerts.culprits import text
from tracer.alerts.rule import View

__all__ = ["TOLD", "lately", "name", "told"]

TOLD = ("precursors", "told")


def told(view: View, kind: str) -> np.ndarray:
    """Return the rows of one kind in the latest window; none where the probe does not run."""
    window = view.windows.get(TOLD)
    return window.rows[window.rows["kind"] == kind.encode()] if window else np.zeros(0, dtype=[("time_ns", "u8")])


def lately(view: View, kind: str, span_ns: int) -> np.ndarray:
    """Return the rows of one kind of the last ``span_ns``: those in the history, and the latest.

    It looks at every window there is: ask only when there is something to tell.
    """
    since_ns = view.now_ns - span_ns
    windows = view.history.get(TOLD) or ([view.windows[TOLD]] if TOLD in view.windows else [])
    recent = [window.rows for window in windows if window.end_ns >= since_ns and len(window.rows)]
    if not recent:
        return told(view, kind)
    rows = np.concatenate(recent)
    wanted: np.ndarray = rows[(rows["time_ns"].astype("i8") >= since_ns) & (rows["kind"] == kind.encode())]
    return wanted


def name(row: np.void) -> str:
    """Return the name in a row as text: of a device, a memory module, a zone."""
    return text(row["name"])
