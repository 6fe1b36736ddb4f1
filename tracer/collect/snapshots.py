"""Two snapshots of a live map, so that an interval is their difference."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tracer.probe import Table

__all__ = ["Snapshots"]

#: A look takes about 2 µs, a program's writes a tenth of that.
_LOOKS = 50
_FEW = 32


class Snapshots:
    """The latest two copies of one mapped array, ``before`` and ``after``.

    They were taken at ``start_ns`` and ``end_ns`` (CLOCK_MONOTONIC); ``was`` and ``now`` are their members by path
    (``"limit.suppressed"``). ``tables`` are those made of the map: where all
    have the same ``used``, rows never given out are not copied, which on a big node is most of the memory; their
    ``peaks`` are set back to 0 in the live map.

    Programs go on writing meanwhile: first a row's keys, then a value's sum, then its slot. So that no copy, whichever
    part of a row it reads first, puts a count under the wrong key, keys are read once more after it: a count in
    ``after`` has its key there. Differences are those of the copies: of a value torn apart, sum and count may come in
    two intervals, each once.

    Rows of tables with ``writes`` are copied until none of these numbers is odd or moved meanwhile. One that a program
    is kept from finishing (its CPU was taken away) stays as it was in the snapshot before: ``stale`` counts those.
    """

    def __init__(self, live: np.ndarray, tables: Sequence[Table] = ()) -> None:
        used = {table.used for table in tables}
        self._used = live[used.pop()] if len(used) == 1 and "" not in used else None
        self._keys = sorted({key for table in tables for key in table.keys})
        self._peaks = sorted({peak for table in tables for peak in table.peaks})
        self._writes = [live[name] for name in sorted({name for table in tables for name in table.writes})]
        self.stale = 0
        self.live = live
        self.before = np.zeros_like(live)
        self.after = np.zeros_like(live)
        self._live, self.was, self.now = _Members(live), _Members(self.before), _Members(self.after)
        # As bytes: numpy copies structs member by member.
        self._bytes, self._copy, self._older = (_bytes(rows) for rows in (live, self.after, self.before))
        self.start_ns = self.end_ns = time.monotonic_ns()
        self.rows: npt.NDArray[np.intp] = np.arange(len(live) if self._used is None else 0)
        #: Whether every row is copied, whoever uses it.
        self.whole = self._used is None

    def take(self) -> None:
        """Copy the live rows; what was ``after`` becomes ``before``."""
        self.before, self.after = self.after, self.before
        self.was, self.now = self.now, self.was
        self._copy, self._older = self._older, self._copy
        self.start_ns = self.end_ns
        self._copy_rows()
        for key in self._keys if len(self.rows) else ():
            self.now[key][self.rows] = self._live[key][self.rows]
        for peak in self._peaks if len(self.rows) else ():
            # Of no more than this interval. What a program stores at the same moment counts for one of the two.
            self._live[peak][self.rows[self.now[peak][self.rows] > 0]] = 0
        self.end_ns = time.monotonic_ns()

    def _copy_rows(self) -> None:
        if self._writes:
            self.stale = sum(not self._copy_whole(row) for row in range(len(self.live)))
        elif self._used is None:
            np.copyto(self._copy, self._bytes)
        else:
            # Rows are given out for good, so each stays in every later snapshot. Compared first: numpy counts what is
            # not zero, then looks for it, and raises an error if there is more of it by then.
            (self.rows,) = (self._used != 0).nonzero()
            self._copy[self.rows] = self._bytes[self.rows]

    def _copy_whole(self, row: int) -> bool:
        """Copy a row as it was at one moment; return whether there was one."""
        for _ in range(_LOOKS):
            writes = [int(numbers[row]) for numbers in self._writes]
            self._copy[row] = self._bytes[row]
            if not any(number & 1 for number in writes) and writes == [int(numbers[row]) for numbers in self._writes]:
                return True
        self._copy[row] = self._older[row]
        return False

    def total(self, path: str) -> int:
        """Return the sum of a counter in ``after``, modulo its width."""
        counts = self.now[path]
        counts = counts if self._used is None else counts[self.rows]
        # Of few numbers Python makes a sum faster than numpy.
        return sum(counts.tolist()) if len(counts) < _FEW else int(counts.sum())


class _Members(dict[str, np.ndarray]):
    """An array's members by path, each made once: numpy makes a new view whenever it is asked for one."""

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__()
        self._rows = rows

    def __missing__(self, path: str) -> np.ndarray:
        found = self._rows
        for name in path.split("."):
            found = found[name]
        self[path] = found
        return found


def _bytes(rows: np.ndarray) -> np.ndarray:
    return rows.view(f"V{rows.dtype.itemsize}")
