"""Which part of a recording is meant: a time, a process, CPUs, tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tracer.analysis.intervals import is_within, span
from tracer.analysis.rows import has
from tracer.analysis.shapes import STACKS
from tracer.analysis.still import are_still, part_ns
from tracer.window import Window

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection:
    """What is exported; everything unless said otherwise.

    ``start_ns`` and ``end_ns`` are of the node's monotonic clock: which intervals are between them ``is_within``
    says. ``pid`` is a process, ``cpus`` are numbers, ``series`` names of probes or of ``probe.table``.
    """

    start_ns: float = float("-inf")
    end_ns: float = float("inf")
    pid: int | None = None
    cpus: Collection[int] = ()
    series: Collection[str] = ()

    def has(self, windows: Sequence[Window]) -> bool:
        """Return whether an interval is of the time that is meant."""
        return bool(windows) and is_within(span(windows), (self.start_ns, self.end_ns))

    def rows(self, window: Window, inside: bool) -> np.ndarray | None:
        """Return the rows that are meant; None when the table knows nothing of it. ``inside``: its interval is meant.

        What stacks and frames are is told once: it is taken from any time, and from every task.
        """
        if self.series and not {window.probe, f"{window.probe}.{window.table}"} & set(self.series):
            return None
        if (window.probe, window.table) in STACKS:
            return window.rows
        if not inside:
            return None
        return self._of_cpus(self._of_process(window.rows))

    def blocks(self, window: Window, inside: bool) -> np.ndarray | None:
        """Return what ``rows`` does of ``offcpu.samples``, and of blocks that went on at the end their part.

        The last interval's part is all that is left.
        """
        rows = self._of_cpus(self._of_process(window.rows))
        if rows is None:
            return None
        still = are_still(rows)
        parts = rows[still]
        stop_ns = float("inf") if inside else self.end_ns
        parts["weight"] = part_ns(parts["weight"], window.end_ns, self.start_ns, stop_ns)
        return np.concatenate([rows[~still][: None if inside else 0], parts[parts["weight"] > 0]])

    def _of_process(self, rows: np.ndarray) -> np.ndarray | None:
        if self.pid is None:
            return rows
        # Where there are both, pid is the thread's.
        column = next((name for name in ("tgid", "pid") if _counts(rows, name)), None)
        return None if column is None else rows[rows[column] == self.pid]

    def _of_cpus(self, rows: np.ndarray | None) -> np.ndarray | None:
        if rows is None or not self.cpus:
            return rows
        return rows[np.isin(rows["cpu"], list(self.cpus))] if _counts(rows, "cpu") else None


def _counts(rows: np.ndarray, name: str) -> bool:
    """Return whether a column is there and holds a whole number per row: a recording may come from anyone."""
    return has(rows, name) and rows.dtype[name].shape == () and rows.dtype[name].kind in "ui"
