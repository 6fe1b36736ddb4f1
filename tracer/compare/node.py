"""What is kept of one recording: a few hundred kB, whatever its length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tracer.analysis.source import Source
from tracer.compare.buckets import Compact
from tracer.compare.metrics import Series

__all__ = ["Node", "RankTime"]


@dataclass(frozen=True)
class RankTime:
    """What a rank did, in ns per bucket, each of shape ``(buckets,)``.

    How long it was there, what its threads ran or wanted to, and what they slept for, by column of ``ledger.time``.
    ``began_ns`` is when its first process began, by the monotonic clock of its node; 0 where that is not known.
    ``worked`` is the CPU time that its processes had used when they were found, as a share of how long it had been
    there; NaN where that is not known.
    """

    wall_ns: np.ndarray
    awake_ns: np.ndarray
    slept_ns: Mapping[str, np.ndarray]
    began_ns: int = 0
    worked: float = float("nan")


@dataclass(frozen=True)
class Node:
    """One recording in numbers.

    Attributes:
        path: of the recording.
        source: which node it is of.
        facts: the fingerprint, one text per path of names, e.g. ``sysctl / vm.swappiness``.
        length_ns, first: length of a bucket, and the number of the first one since 1970.
        start_ns, end_ns: what was recorded, in UTC.
        histograms: by series, per bucket.
        numbers: (above, below) by series, shape ``(buckets, 2)``.
        seen_ns: how much time each bucket holds, shape ``(buckets,)``.
        lost: share of events that were not seen; ``losses``: the same by probe, of those that lost any.
        told: the share of the intervals that has each probe.
        every: one of so many intervals was read.
        ranks: what each did, by job, as it is called, and rank.
        remarks: what limits it, in short sentences that may hold unescaped names.
    """

    path: str
    source: Source
    facts: Mapping[str, str]
    length_ns: int
    first: int
    start_ns: int
    end_ns: int
    histograms: Mapping[Series, Compact]
    numbers: Mapping[Series, np.ndarray]
    seen_ns: np.ndarray
    lost: float
    every: int = 1
    remarks: tuple[str, ...] = ()
    losses: Mapping[str, float] = field(default_factory=dict)
    told: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[tuple[str, int], RankTime] = field(default_factory=dict)

    @property
    def clocked(self) -> bool:
        """Whether its times are those of a wall clock."""
        return self.source.clock_offset_ns == self.source.clock_offset_ns

    @property
    def series(self) -> set[Series]:
        """What was measured."""
        return {*self.histograms, *self.numbers}
