"""Everything known about a run so far, built window by window in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tracer.analysis.blame import Blame
from tracer.analysis.events import Worst
from tracer.analysis.gate import checked, is_known
from tracer.analysis.intervals import CLOCK_LATE, Intervals
from tracer.analysis.losses import MAX_PROBES, Losses
from tracer.analysis.merged import MAX_KEYS, Group, Merged, Shape
from tracer.analysis.rows import COMM, has, numbers, text
from tracer.analysis.shapes import EVENTS, SAMPLES, SHAPES, STACKS, UNKNOWN, TableName
from tracer.analysis.source import Source
from tracer.analysis.stacks import Dictionary, Stacks
from tracer.analysis.sums import Sums
from tracer.window import Window

__all__ = ["Summary"]

MAX_REFUSED = 64
# Tables of later versions: 64 with 1024 series each hold 150 MB at most.
MAX_UNKNOWN = 64
MAX_UNKNOWN_KEYS = 1024
# All of an interval, shared out.
_SHARED_OUT = frozenset({("cpustate", "time"), ("ledger", "time"), ("ledger", "taken")})
_SAMPLED = np.dtype([("cpu", "u4"), ("pid", "u4"), ("comm", COMM)])


class Summary:
    """A run, live or replayed, in numbers.

    An interval in which the node stood still (a paused VM) says nothing about latency: its histograms, events and
    CPU times are left out and ``intervals`` says how many were. Counters of devices and losses are kept, and of stalls
    those that show more than a clock that came late.

    Attributes:
        source: which node it is of, what was filtered and who recorded it.
        idle: whether idle waits are among the heaviest stacks.
        intervals: lengths, pauses, gaps.
        losses: by probe and reason.
        blame: who held the CPU during long waits, by CPU.
        refused: windows whose columns can't be read: (table, why) with how many, the first few kinds of them.
        worst: the worst single events by table.
        sample_cpus: weight by cpu, pid and comm, by table of stack samples; ``stacks`` holds the stacks, by probe.
    """

    def __init__(self, interval_ns: int = 0, source: Source | None = None, idle: bool = False) -> None:
        self.idle = idle
        self.source = source or Source()
        self.intervals = Intervals(interval_ns)
        self.losses = Losses()
        self.blame = Blame(self.source)
        self.refused: dict[tuple[TableName, str], int] = {}
        self.worst: dict[TableName, Worst] = {}
        self.sample_cpus: dict[TableName, Sums] = {}
        self.stacks: dict[str, Stacks] = {}
        self._tables: dict[TableName, Merged] = {}
        self._seen: set[str] = set()
        self._unknown_windows = 0

    def add(self, window: Window) -> None:
        """Add one window that stands alone. Windows of one interval belong together: see ``add_interval``."""
        self.add_interval([window])

    def add_interval(self, windows: Sequence[Window]) -> None:
        """Add the windows of one interval. An empty interval is none."""
        if not windows:
            return
        # Whose a wait is decides what it counts as.
        windows = sorted(windows, key=lambda one: one.probe != "jobs")
        readable = [checked(window) for window in windows]
        paused = self.intervals.judge([window for window, _ in readable]) == "paused"
        for window, why in readable:
            name = (window.probe, window.table)
            self._see(window.probe)
            self.losses.add(window.probe, window.losses)
            if why:
                self._refuse(name, why)
            elif not (paused and _is_timing(window)):
                self._add(name, _outside_pause(window) if paused else window)

    @property
    def damaged(self) -> bool:
        """Whether a table that is known here can't be read: not so one of a later version."""
        return any(is_known(name) for name, _ in self.refused)

    def table(self, probe: str, table: str) -> Merged | None:
        """Return a merged table; None when it was not recorded."""
        return self._tables.get((probe, table))

    def events(self, probe: str, table: str) -> Worst | None:
        """Return a table's worst events; None when it was not recorded."""
        return self.worst.get((probe, table))

    def seen(self, probe: str) -> bool:
        """Return whether any table of ``probe`` was recorded."""
        return probe in self._seen

    def histograms(self) -> dict[TableName, Merged]:
        """Return every recorded table that holds a histogram, also of probes unknown here."""
        return {name: merged for name, merged in self._tables.items() if "slots" in merged.columns}

    def counted(self, probe: str) -> int:
        """Return how many values the histograms of ``probe`` hold: what its losses are compared with."""
        tables = (merged for name, merged in self.histograms().items() if name[0] == probe)
        return sum(merged.total().statistics.count for merged in tables)

    def unkept(self) -> dict[str, int]:
        """Return how many rows found no room here, by table: more keys than any node should have."""
        found = {
            f"{probe}.{name}": merged.unkept_rows
            for (probe, name), merged in self._tables.items()
            if merged.unkept_rows
        }
        for probe, stacks in self.stacks.items():
            if stacks.unkept:
                found[f"{probe}.stacks"] = stacks.unkept
        if self.losses.unkept:
            found["losses"] = self.losses.unkept
        if self._unknown_windows:
            found["windows of unknown tables"] = self._unknown_windows
        return found

    def dictionary(self, probe: str) -> Dictionary:
        """Return what the stacks and frames of ``probe`` are, as far as it was told; it learns what follows, too."""
        return self._stacks_of(probe)

    def cost(self) -> dict[str, Group]:
        """Return ``agent.cost`` by program; empty when it was not recorded."""
        merged = self.table("agent", "cost")
        return {text(key): group for (key,), group in merged.groups("program").items()} if merged else {}

    def _refuse(self, name: TableName, why: str) -> None:
        if (name, why) in self.refused or len(self.refused) < MAX_REFUSED:
            self.refused[name, why] = self.refused.get((name, why), 0) + 1

    def _add(self, name: TableName, window: Window) -> None:
        if name in EVENTS:
            self.worst.setdefault(name, Worst(*EVENTS[name])).add(window.rows)
            if name == ("runqueue", "worst"):
                self.blame.add(window.rows)
            elif name == ("softirq", "worst"):
                self.blame.add_softirqs(window.rows)
        elif name == ("agent", "clock"):
            self.source.learn_clock(window)
        elif name == ("jobs", "members"):
            self.source.jobs.add(window)
        elif name in SAMPLES:
            self._add_samples(name, window)
        elif name in STACKS:
            self._stacks_of(name[0]).learn(window.rows)
        elif name in SHAPES:
            self._merge(name, window, SHAPES[name], MAX_KEYS)
        elif has(window.rows, "slots"):
            if name in self._tables or sum(one not in SHAPES for one in self._tables) < MAX_UNKNOWN:
                self._merge(name, window, UNKNOWN, MAX_UNKNOWN_KEYS)
            else:
                self._unknown_windows += 1

    def _merge(self, name: TableName, window: Window, shape: Shape, most: int) -> None:
        if name not in self._tables:
            self._tables[name] = Merged(shape, most)
        self._tables[name].add(window.rows, window.end_ns - window.start_ns)

    def _see(self, probe: str) -> None:
        if len(self._seen) < MAX_PROBES:
            self._seen.add(probe)

    def _stacks_of(self, probe: str) -> Stacks:
        if probe not in self.stacks:
            self.stacks[probe] = Stacks(self.source, self.idle) if probe == "offcpu" else Stacks()
        return self.stacks[probe]

    def _add_samples(self, name: TableName, window: Window) -> None:
        self._stacks_of(name[0]).add(window.rows)
        if name not in self.sample_cpus:
            self.sample_cpus[name] = Sums(_SAMPLED, ("weight",), MAX_KEYS)
        self.sample_cpus[name].add(window.rows)


def _outside_pause(window: Window) -> Window:
    """Return ``window`` without what a pause of the whole machine shows as well, on every CPU: late clocks."""
    if (window.probe, window.table) == ("cpustall", "stalls"):
        return replace(window, rows=window.rows[numbers(window.rows, "evidence") != CLOCK_LATE])
    return replace(window, rows=window.rows[:0]) if (window.probe, window.table) == ("cpustall", "open") else window


def _is_timing(window: Window) -> bool:
    name = (window.probe, window.table)
    # A stall is told with its evidence: it is no guess from how long an interval took.
    if name[0] == "cpustall":
        return False
    return name in EVENTS or name in SAMPLES or has(window.rows, "slots") or name in _SHARED_OUT
