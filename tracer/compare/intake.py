"""One recording's windows, added up by time of day into a ``Node``: only that stays in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tracer import units
from tracer.analysis import thresholds
from tracer.analysis.gate import checked
from tracer.analysis.losses import missed
from tracer.analysis.rows import has, key_bytes, numbers
from tracer.analysis.source import Source
from tracer.compare.buckets import Buckets, Compact, base_length_ns
from tracer.compare.metrics import METRICS, Metric, Series, normalised
from tracer.compare.node import Node
from tracer.compare.roll import Roll
from tracer.window import Window

__all__ = ["TABLES", "Intake"]

#: What of a recording is looked at, with the metrics made of it. ``agent.clock`` tells when the clock was set,
#: ``jobs.members`` which processes are a job's.
TABLES: Mapping[tuple[str, str], list[Metric]] = {
    ("agent", "clock"): [],
    ("jobs", "members"): [],
    **{one.table: [metric for metric in METRICS.values() if metric.table == one.table] for one in METRICS.values()},
}

_COMPARED = {metric.table[0] for metric in METRICS.values()}
#: Probes that count events: of what the others tell no share could be lost.
_COUNTING = {metric.table[0] for metric in METRICS.values() if metric.kind == "histogram" or metric.of_ranks}
# An interval in which the whole node stood still (a paused VM) is no latency of the node's.
_PAUSE_FACTOR = 3
_PAUSE_LEAST_NS = 1_000_000_000
# Of all events: a percent more or less in the tail is what is looked for.
_LOSSY = 0.01


class Intake:
    """Adds up windows of one recording, of which one interval of ``every`` so many is given.

    ``length_ns`` is that of the shortest bucket; by default seconds, of which nodes have the same.
    """

    def __init__(self, source: Source, every: int = 1, length_ns: int = 0) -> None:
        self._source = source
        # One interval of each that are passed: what is shorter would be empty now and then.
        self._buckets = Buckets(length_ns or base_length_ns(source.interval_ns * every))
        self._pending: dict[tuple[str, str], _Pending] = {}
        self._lost: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._waits = 0
        # A filter shows some processes, and nothing of the others.
        self._ranks = Roll(source.jobs, self._buckets, whole=not {"pid", "cgroup"} & dict(source.filters).keys())
        self._paused = self._set_back = 0
        self._refused: set[str] = set()
        self._start_ns = self._end_ns = 0
        self._clocked = source.clock_offset_ns == source.clock_offset_ns
        self.intervals = 0

    def add(self, windows: Sequence[Window]) -> bool:
        """Add one interval. Returns whether it counts: not where the node stood still, or its clock was set back."""
        if not windows:
            return False
        for window in windows:
            if (window.probe, window.table) == ("agent", "clock"):
                self._source.learn_clock(window)
            elif (window.probe, window.table) == ("jobs", "members"):
                self._source.jobs.add(window)
                self._ranks.learn()
        length_ns = min(window.end_ns - window.start_ns for window in windows)
        if self._source.interval_ns and length_ns > _PAUSE_FACTOR * self._source.interval_ns + _PAUSE_LEAST_NS:
            self._paused += 1
            return False
        start_ns, end_ns = windows[0].start_ns, windows[0].end_ns
        bucket = self._buckets.place(self._unix_ns((start_ns + end_ns) // 2))
        if bucket < 0:
            self._set_back += 1
            return False
        if not self.intervals:
            self._start_ns = self._unix_ns(start_ns)
        self._end_ns = self._unix_ns(end_ns)
        self.intervals += 1
        self._buckets.add_time(bucket, length_ns)
        self._told.update({window.probe for window in windows} & _COMPARED)
        for window in windows:
            self._lost[window.probe] += sum(missed(window.probe, window.losses).values())
            if metrics := TABLES.get((window.probe, window.table)):
                self._add(window, bucket, metrics)
        return True

    def node(self, path: str, facts: dict[str, str], remarks: tuple[str, ...], every: int) -> Node:
        """Return what was added up."""
        for pending in self._pending.values():
            pending.flush(self._buckets)
        kept, used = self._buckets, slice(0, self._buckets.used)
        histograms = {series: Compact.from_slots(slots[used]) for series, slots in kept.histograms.items()}
        losses, lost = self._losses(histograms)
        remarks = (
            *remarks,
            *(
                f"{units.percent(share)} of its {probe} events were not seen"
                for probe, share in losses.items()
                if share > _LOSSY
            ),
        )
        return Node(
            path=path,
            source=self._source,
            facts=facts,
            length_ns=kept.length_ns,
            first=kept.first,
            start_ns=self._start_ns,
            end_ns=self._end_ns,
            histograms=histograms,
            numbers={series: values[used].copy() for series, values in kept.numbers.items()},
            seen_ns=kept.seen_ns[used].copy(),
            lost=lost,
            every=every,
            remarks=remarks,
            losses=losses,
            told={probe: number / max(1, self.intervals) for probe, number in self._told.items()},
            ranks=self._ranks.called(),
        )

    def _losses(self, histograms: Mapping[Series, Compact]) -> tuple[dict[str, float], float]:
        """Return which share of its events each probe lost, the most first, and all together."""
        counted = Counter({"ledger": self._waits})
        for series, one in histograms.items():
            counted[METRICS[series.metric].table[0]] += int(one.counts.sum())
        lost = {
            probe: number / (number + counted[probe])
            for probe, number in self._lost.items()
            if number and probe in _COUNTING
        }
        all_lost = self._lost.total()
        return dict(sorted(lost.items(), key=lambda one: -one[1])), all_lost / max(1, all_lost + counted.total())

    def remarks(self) -> list[str]:
        """Say what limits the recording, but for what its reader says."""
        found = [f"{why}" for why in sorted(self._refused)]
        if self._paused:
            found.append(f"stood still in {self._paused} of its intervals")
        if self._set_back:
            found.append(f"its clock was set back: {self._set_back} intervals are left out")
        if self._buckets.unkept:
            found.append("it has more kinds of interrupt lines than are compared")
        if not self._clocked:
            found.append("its clock is not known")
        return found

    def _unix_ns(self, monotonic_ns: int) -> int:
        return int(self._source.unix_ns(monotonic_ns)) if self._clocked else monotonic_ns

    def _add(self, window: Window, bucket: int, metrics: Iterable[Metric]) -> None:
        window, why = checked(window)
        if why:
            self._refused.add(f"{window.probe}.{window.table} can't be read: {why}")
            return
        if any(metric.of_ranks for metric in metrics):
            # Its events are in no histogram.
            self._waits += int(numbers(window.rows, "waits").sum())
            self._ranks.add(window.rows, bucket, window.end_ns - window.start_ns)
            window = self._of_ranks(window)
            if not len(window.rows):
                return
        rows, length_ns = _own(window), window.end_ns - window.start_ns
        for metric in metrics:
            if metric.kind == "histogram":
                if has(rows, "slots") and len(rows):
                    pending = self._pending.setdefault(metric.table, _Pending(metric))
                    pending.add(self._buckets, bucket, rows)
            elif any(has(rows, name) for name in metric.above):
                above = sum(float(numbers(rows, name).sum()) for name in metric.above)
                below = sum(float(numbers(rows, name).sum()) for name in metric.below) if metric.below else length_ns
                self._buckets.add_numbers(Series(metric.name), bucket, above, below)

    def _of_ranks(self, window: Window) -> Window:
        """Return the rows of processes that belong to a job, as far as the recording has told so far."""
        pids = numbers(window.rows, "pid").tolist()
        chosen = np.array([self._source.jobs.of(int(pid)) is not None for pid in pids], bool)
        return replace(window, rows=window.rows[chosen])


class _Pending:
    """Rows with the same keys, added up before they are sorted into series: from one interval to the next they rarely
    change."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._bucket = -1
        self._origin: tuple[int, int] = (0, 0)
        self._identity: bytes | None = None
        self._keys: list[str] = []
        self._slots = np.zeros((0, 0), np.uint64)

    def add(self, buckets: Buckets, bucket: int, rows: np.ndarray) -> None:
        """Add one window's rows."""
        identity = key_bytes(rows, (self._metric.by,)) if self._metric.by else b"%d" % len(rows)
        origin = (buckets.length_ns, buckets.first)
        if identity != self._identity or bucket != self._bucket or origin != self._origin:
            self.flush(buckets)
            self._identity, self._bucket, self._origin = identity, bucket, origin
            column = rows[self._metric.by].tolist() if self._metric.by else [""] * len(rows)
            self._keys = [normalised(self._metric.by, key) if self._metric.by else "" for key in column]
            self._slots = rows["slots"].astype(np.uint64)
        else:
            self._slots += rows["slots"]

    def flush(self, buckets: Buckets) -> None:
        """Hand on what was added up."""
        # Buckets may have been added up in pairs since.
        bucket = (self._bucket + self._origin[1]) * self._origin[0] // buckets.length_ns - buckets.first
        for key in dict.fromkeys(self._keys):
            chosen = [place for place, other in enumerate(self._keys) if other == key]
            buckets.add_slots(Series(self._metric.name, key), bucket, self._slots[chosen].sum(axis=0))
        self._keys = []


def _own(window: Window) -> np.ndarray:
    """Return the rows that count: of polls, those by drivers; busy-polling applications ask for little at a time."""
    rows = window.rows
    if (window.probe, window.table) == ("napi", "poll") and has(rows, "budget"):
        return rows[rows["budget"] >= thresholds.NAPI_BUDGET]
    return rows
