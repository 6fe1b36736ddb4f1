"""What is kept of one recording: a few hundred kB, whatever its length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tracer.analysis.source import Source
from tracer.compare.buckets import Compact
from tracer.compare.metrics import Series

__all__ = ["Node"]


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
        lost: share of events that were not seen.
        every: one of so many intervals was read.
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

    @property
    def clocked(self) -> bool:
        """Whether its times are those of a wall clock."""
        return self.source.clock_offset_ns == self.source.clock_offset_ns

    @property
    def series(self) -> set[Series]:
        """What was measured."""
        return {*self.histograms, *self.numbers}
