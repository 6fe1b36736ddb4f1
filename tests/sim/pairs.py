"""Pairs of recordings as arrays of histograms: windows of a real one, resampled, the second one changed or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim.cluster import _later, _partly, read_pools
from tracer.analysis.source import Source
from tracer.compare.buckets import Compact
from tracer.compare.metrics import Series
from tracer.compare.node import Node
from tracer.histogram import SLOTS

__all__ = ["CHANGES", "Wobble", "make_side", "real_side", "real_windows"]

_WHOLE = ((0.0, 1.0),)
#: Octaves by which a share of the values becomes longer, and from where to where of the side.
CHANGES: Mapping[str, tuple[float, float, Sequence[tuple[float, float]]]] = {
    "none": (0.0, 0.0, _WHOLE),
    "+15 %": (np.log2(1.15), 1.0, _WHOLE),
    "+25 %": (np.log2(1.25), 1.0, _WHOLE),
    "+50 %": (np.log2(1.5), 1.0, _WHOLE),
    "2 % x 16": (4.0, 0.02, _WHOLE),
    "0.5 % x 64": (6.0, 0.005, _WHOLE),
    "one CPU": (2.0, 1 / 8, _WHOLE),  # of eight
    "last half": (np.log2(1.5), 1.0, ((0.5, 1.0),)),
    "last 4th": (np.log2(1.5), 1.0, ((0.75, 1.0),)),
    "last 8th": (np.log2(1.5), 1.0, ((0.875, 1.0),)),
    "mid 8th": (np.log2(1.5), 1.0, ((0.4375, 0.5625),)),
    "2 parts": (np.log2(1.5), 1.0, ((0.2, 0.35), (0.45, 0.6))),
}
_SECOND = 10**9


@dataclass(frozen=True)
class Wobble:
    """How windows differ without a change, in octaves.

    ``each``: every window by itself; ``slow``: what goes on for ``lasting`` windows; ``bursts``: share of windows in
    which a tenth to all values take two to eight times as long. ``times``: all windows of a
    side. ``stretch``: so many real windows that follow each other are drawn together.
    """

    each: float = 0.05
    slow: float = 0.05
    lasting: float = 10.0
    bursts: float = 0.02
    times: float = 0.0
    stretch: int = 5


def real_windows(path: Path) -> dict[Series, np.ndarray]:
    """Return the histograms of one recording's series, ``(intervals, SLOTS)``, as many of each."""
    pools = {series: pool[0].intervals for series, pool in read_pools([path]).items()}
    shortest = min(map(len, pools.values()), default=0)
    return {series: intervals[:shortest] for series, intervals in pools.items()}


def make_side(
    windows: Mapping[Series, np.ndarray],
    number: int,
    random: np.random.Generator,
    wobble: Wobble,
    changed: Mapping[Series, str] | None = None,
) -> Node:
    """Draw a side of ``number`` windows of a second: all series from the same moments of the real recording."""
    length = len(next(iter(windows.values())))
    stretches = -(-number // wobble.stretch)
    starts = random.integers(0, length - wobble.stretch + 1, stretches)
    moments = (starts[:, None] + np.arange(wobble.stretch)).ravel()[:number]
    histograms = {}
    for series, real in windows.items():
        octaves = random.normal(0, wobble.each, number) + _slow(random, number, wobble) + random.normal(0, wobble.times)
        expected = _later(real[moments], octaves)
        bursts = random.random(number) < wobble.bursts
        expected[bursts] = _partly(
            expected[bursts], random.uniform(1, 3, bursts.sum()), random.uniform(0.1, 1, bursts.sum())
        )
        by, share, spans = CHANGES[(changed or {}).get(series, "none")]
        place = (np.arange(number) + 0.5) / number
        changed_then = np.any([(begin <= place) & (place < end) for begin, end in spans], axis=0)
        expected = _partly(expected, np.where(changed_then, by, 0.0), np.full(number, share))
        drawn = np.zeros((number, SLOTS), np.uint64)
        drawn[:] = random.poisson(expected)
        histograms[series] = Compact.from_slots(drawn)
    return _node(histograms, number)


def real_side(windows: Mapping[Series, np.ndarray], start: int, number: int) -> Node:
    """Return ``number`` windows of the recording itself, from ``start`` on."""
    return _node(
        {
            series: Compact.from_slots(real[start : start + number].astype(np.uint64))
            for series, real in windows.items()
        },
        number,
    )


def _slow(random: np.random.Generator, number: int, wobble: Wobble) -> np.ndarray:
    """Return noise that forgets itself after ``lasting`` windows (a first-order autoregression)."""
    keeps = np.exp(-1 / wobble.lasting)
    values = np.zeros(number)
    values[0] = random.normal(0, wobble.slow)
    for place in range(1, number):
        values[place] = keeps * values[place - 1] + random.normal(0, wobble.slow * np.sqrt(1 - keeps**2))
    return values


def _node(histograms: Mapping[Series, Compact], number: int) -> Node:
    return Node(
        path="simulated",
        source=Source(interval_ns=_SECOND),
        facts={},
        length_ns=_SECOND,
        first=0,
        start_ns=0,
        end_ns=number * _SECOND,
        histograms=dict(histograms),
        numbers={},
        seen_ns=np.full(number, _SECOND),
        lost=0.0,
    )
