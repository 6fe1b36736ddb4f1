"""The stacks of a recording by task, with their weights in ns whatever they were counted in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tracer import brackets
from tracer.analysis.frames import Frame
from tracer.analysis.gate import checked
from tracer.analysis.idle import WHOSE, IdleTime, idle_time, whose
from tracer.analysis.rows import COMM, text
from tracer.analysis.shapes import SAMPLES, STACKS
from tracer.analysis.source import Source
from tracer.analysis.stacks import Dictionary
from tracer.analysis.sums import Sums
from tracer.reports.export.selection import Selection
from tracer.window import Window

__all__ = ["KINDS", "Kind", "StackWeights", "WeightedStack"]

_BLOCKS = ("offcpu", "samples")
_STACK = (("comm", COMM), ("stack", "u8"), WHOSE)
_THREAD = (("pid", "u4"), ("tid", "u4"))
_NO_STACK = (Frame(False, "", brackets.NO_STACK),)
_OTHERS = (Frame(False, "", brackets.OTHERS),)


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

    Without ``threads``, those of one name are taken together; their pid and tid are 0. Idle waits are left out, unless
    ``idle``.
    """

    def __init__(self, source: Source, selection: Selection, *, threads: bool = True, idle: bool = False) -> None:
        self._source, self._all_told = source, idle
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
        inside = self._selection.has(windows)
        # Whose a wait is decides what it counts as.
        for window in sorted(windows, key=lambda one: one.probe != "jobs"):
            name = (window.probe, window.table)
            if name == ("jobs", "members"):
                self._source.jobs.add(checked(window)[0])
            if window.probe not in self._sums:
                continue
            if name not in SAMPLES and name not in STACKS:
                continue
            window, why = checked(window)
            rows = None
            if not why:
                rows = (self._selection.blocks if name == _BLOCKS else self._selection.rows)(window, inside)
            if rows is None:
                continue
            if name in STACKS:
                self._dictionaries[window.probe].learn(rows)
            else:
                self._sums[window.probe].add(rows, whose=whose(rows, self._source) if name == _BLOCKS else 0)
                if inside:
                    self.start_ns = min(self.start_ns or window.start_ns, window.start_ns)
                    self.end_ns = max(self.end_ns, window.end_ns)

    @property
    def unkept(self) -> int:
        """How many stacks and frames of the dictionary found no room."""
        return sum(one.unkept for one in self._dictionaries.values())

    @cached_property
    def idle(self) -> IdleTime:
        """What is idle of the time off the CPU. Ask when everything was added."""
        if "offcpu" not in self._sums:
            return IdleTime(0, {}, 0)
        sums = self._sums["offcpu"]
        return idle_time(sums.rows(), self._idle_kinds, int(sums.rows()["weight"].sum()) + sums.other["weight"])

    @cached_property
    def _idle_kinds(self) -> np.ndarray:
        return self._dictionaries["offcpu"].idle_kinds(self._sums["offcpu"].rows())

    def _rows(self, kind: Kind) -> np.ndarray:
        rows = self._sums[kind.probe].rows()
        return rows if self._all_told or kind.probe != "offcpu" else rows[self._idle_kinds == 0]

    def present(self) -> tuple[Kind, ...]:
        """Return the kinds that weigh anything. Ask when everything was added."""
        return tuple(kind for kind in self.kinds if len(self._rows(kind)))

    def stacks(self, kind: Kind) -> Iterator[WeightedStack]:
        """Yield the stacks of a kind by task, then what could not be told apart, so that the sum is true."""
        sums, dictionary = self._sums[kind.probe], self._dictionaries[kind.probe]
        rows = self._rows(kind)
        known = dictionary.every(np.unique(rows["stack"]).tolist())
        for *thread, comm, stack, _, weight, count in rows.tolist():
            pid, tid = thread or (0, 0)
            yield WeightedStack(text(comm), pid, tid, known[stack] or _NO_STACK, *self._measures(kind, weight, count))
        if sums.other["weight"]:
            yield WeightedStack("", 0, 0, _OTHERS, *self._measures(kind, **sums.other))

    def _measures(self, kind: Kind, weight: int, count: int) -> tuple[int, int]:
        """Return (ns, count): a sample stands for the time to the next one."""
        if kind.probe == "oncpu":
            return round(weight * 1e9 / self._source.sample_hz), weight
        return weight, count
