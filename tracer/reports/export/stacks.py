"""The stacks of a recording by task, with their weights in ns whatever they were counted in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracer.analysis.gate import checked
from tracer.analysis.rows import COMM, text
from tracer.analysis.shapes import SAMPLES, STACKS
from tracer.analysis.source import Source
from tracer.analysis.stacks import Dictionary, Frame
from tracer.analysis.sums import Sums
from tracer.reports.export.selection import Selection
from tracer.window import Window

__all__ = ["KINDS", "Kind", "StackWeights", "WeightedStack"]

_STACK = (("comm", COMM), ("stack", "u8"))
_THREAD = (("pid", "u4"), ("tid", "u4"))
_NO_STACK = (Frame(False, "", "[no stack]"),)
_OTHERS = (Frame(False, "", "[others: too many to tell apart]"),)


@dataclass(frozen=True)
class Kind:
    """Stacks of one probe: their name for people, what is counted, the name of the time."""

    probe: str
    title: str
    counted: str
    time: str


KINDS = (Kind("oncpu", "on-CPU", "samples", "cpu"), Kind("offcpu", "off-CPU", "blocks", "off_cpu"))


@dataclass(frozen=True)
class WeightedStack:
    """A thread's stack: ``frames`` from the outermost on, ``ns`` of time, ``count`` of samples or blocks."""

    comm: str
    pid: int
    tid: int
    frames: Sequence[Frame]
    ns: int
    count: int


class StackWeights:
    """The stacks of the selected part of a recording, in bounded memory.

    Without ``threads``, those of one name are taken together; their pid and tid are 0.
    """

    def __init__(self, source: Source, selection: Selection, *, threads: bool = True) -> None:
        self._source = source
        # Dictionary and samples are tables of one probe: whoever names one table means both.
        self._selection = replace(selection, series=())
        named = {name.partition(".")[0] for name in selection.series}
        self.kinds = tuple(kind for kind in KINDS if not named or kind.probe in named)
        self._dictionaries = {kind.probe: Dictionary() for kind in self.kinds}
        keys = np.dtype([*(_THREAD if threads else ()), *_STACK])
        self._sums = {kind.probe: Sums(keys, ("weight", "count")) for kind in self.kinds}
        self.start_ns = self.end_ns = 0

    def add_interval(self, windows: Sequence[Window]) -> None:
        """Add the windows of one interval."""
        for window in windows:
            if window.probe not in self._sums:
                continue
            name = (window.probe, window.table)
            if name not in SAMPLES and name not in STACKS:
                continue
            window, why = checked(window)
            rows = self._selection.rows(window)
            if why or rows is None:
                continue
            if name in STACKS:
                self._dictionaries[window.probe].learn(rows)
            else:
                self._sums[window.probe].add(rows)
                self.start_ns = min(self.start_ns or window.start_ns, window.start_ns)
                self.end_ns = max(self.end_ns, window.end_ns)

    @property
    def unkept(self) -> int:
        """How many stacks and frames of the dictionary found no room."""
        return sum(one.unkept for one in self._dictionaries.values())

    def present(self) -> tuple[Kind, ...]:
        """Return the kinds that weigh anything."""
        return tuple(kind for kind in self.kinds if len(self._sums[kind.probe].rows()))

    def stacks(self, kind: Kind) -> Iterator[WeightedStack]:
        """Yield the stacks of a kind by task, then what could not be told apart, so that the sum is of all."""
        sums, dictionary = self._sums[kind.probe], self._dictionaries[kind.probe]
        rows = sums.rows()
        known = dictionary.every(np.unique(rows["stack"]).tolist())
        for *thread, comm, stack, weight, count in rows.tolist():
            pid, tid = thread or (0, 0)
            yield WeightedStack(text(comm), pid, tid, known[stack] or _NO_STACK, *self._measures(kind, weight, count))
        if sums.other["weight"]:
            yield WeightedStack("", 0, 0, _OTHERS, *self._measures(kind, **sums.other))

    def _measures(self, kind: Kind, weight: int, count: int) -> tuple[int, int]:
        """Return (ns, count): a sample stands for the time to the next one."""
        if kind.probe == "oncpu":
            return round(weight * 1e9 / self._source.sample_hz), weight
        return weight, count
