"""Clusters of nodes as arrays of histograms: windows of real recordings, resampled, with one fault that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tracer.analysis.rows import has
from tracer.compare.limits import LEAST_LOST
from tracer.compare.metrics import METRICS, Series, normalised
from tracer.compare.scan import baseline_of
from tracer.compare.shapes import means_ns
from tracer.histogram import SLOTS
from tracer.recording import RecordingReader

__all__ = ["FAULTS", "HEALTHY", "INTERVALS", "NONE", "Cluster", "Pool", "make_cluster", "read_pools"]

#: Intervals of a second in one window.
INTERVALS = 16
#: Faults of one node, and what none is one of.
FAULTS = ("+15 %", "+25 %", "+50 %", "2 % x 16", "0.5 % x 64", "intermittent", "drift", "one CPU")
HEALTHY = "healthy"
NONE = (HEALTHY, "victim", "common cause")
#: A series of so many values a second at least tells something about tails.
_LEAST_RATE = 50
#: Of so much time a second ten percent are as much as is told at all.
_LEAST_NS = 1e10 * LEAST_LOST

# How nodes and windows differ without a fault. The first two are those of references that measured clusters.
_NODES, _WINDOWS = 0.04, 0.03  # standard deviations, of the logarithm
_BURSTS, _MISSING, _SHORT = 0.02, 0.02, 0.05
_SKEW = 0.25  # of a window, standard deviation
_MARGIN = 72  # slots that faults and bursts reach into


@dataclass(frozen=True)
class Pool:
    """Histograms of one series in one real recording, shape ``(intervals, SLOTS)``."""

    series: Series
    intervals: np.ndarray


@dataclass(frozen=True)
class Cluster:
    """Histograms ``(nodes, windows, n)`` from slot ``first`` on; ``ill`` have their faults from window ``onset`` on."""

    slots: np.ndarray
    first: int
    onset: int
    ill: Mapping[int, str] = field(default_factory=dict)


def read_pools(paths: Sequence[Path]) -> dict[Series, list[Pool]]:
    """Return the series with enough values, one pool per recording that has them."""
    pools: dict[Series, list[Pool]] = {}
    for path in paths:
        for series, intervals in _series(path).items():
            whole = np.stack(intervals)
            spent_ns = np.nansum(means_ns(whole) * whole.sum(axis=1)) / len(whole)
            if whole.sum() >= _LEAST_RATE * len(whole) and spent_ns >= _LEAST_NS and len(whole) >= 8:
                pools.setdefault(series, []).append(Pool(series, whole))
    return pools


def make_cluster(
    pools: Sequence[Pool], faults: Sequence[str], random: np.random.Generator, nodes: int, windows: int
) -> Cluster:
    """Draw a cluster whose nodes all go through the same phases, each phase like one of ``pools``.

    ``faults``: each of one node; or one of ``NONE``.
    """
    baseline = baseline_of(windows)
    onset = int(random.integers(baseline + 1, windows - 8))
    phases = _phases(len(pools), random, windows)
    used = np.flatnonzero(np.any([pool.intervals.any(axis=0) for pool in pools], axis=0))
    first, last = max(0, int(used[0]) - _MARGIN), min(SLOTS, int(used[-1]) + _MARGIN)
    drawn = [pool.intervals[:, first:last] for pool in pools]
    octaves = (random.normal(0, _NODES, (nodes, 1)) + random.normal(0, _WINDOWS, (nodes, windows))) / np.log(2)
    octaves = octaves + random.normal(0, 0.15, windows) / np.log(2)
    expected = np.empty((nodes, windows, last - first), np.float32)
    for window in range(windows):
        # Clocks are skewed: a node may still be in the phase before.
        late = np.abs(random.normal(0, _SKEW, nodes)).clip(0, 1)[:, None]
        now = _bootstrap(drawn[phases[window]], random, nodes)
        before = _bootstrap(drawn[phases[max(0, window - 1)]], random, nodes)
        expected[:, window] = _later(now * (1 - late) + before * late, octaves[:, window])
    bursts = random.random((nodes, windows)) < _BURSTS
    expected[bursts] = _partly(
        expected[bursts], random.uniform(1, 3, bursts.sum()), random.uniform(0.1, 1, bursts.sum())
    )
    ill = _infect(expected, faults, onset, random)
    expected[random.random((nodes, windows)) < _MISSING] = 0
    for node in np.flatnonzero(random.random(nodes) < _SHORT):
        if node not in ill:
            expected[node, int(random.integers(windows // 2, windows)) :] = 0
    slots = np.empty(expected.shape, np.uint32)
    for window in range(windows):
        slots[:, window] = random.poisson(expected[:, window])
    return Cluster(slots, first, onset, ill)


def _infect(expected: np.ndarray, faults: Sequence[str], onset: int, random: np.random.Generator) -> dict[int, str]:
    """Apply the faults to ``expected``; return the nodes that are to be found."""
    nodes, windows, _ = expected.shape
    after, length = expected[:, onset:], windows - onset
    chosen = random.choice(nodes, len(faults), replace=False)
    match faults:
        case [none] if none == HEALTHY:
            return {}
        case ["victim"]:
            # It waits for others: fewer of everything, none of it slower.
            after[chosen] *= 0.3
            return {}
        case ["common cause"]:
            many = random.choice(nodes, int(nodes * random.uniform(0.3, 0.8)), replace=False)
            for node in many:
                after[node] = _later(after[node], np.full(length, np.log2(1.5)))
            return {}
    ill = {int(node): fault for node, fault in zip(chosen, faults, strict=True)}
    for node, fault in ill.items():
        after[node] = _partly(after[node], *_shape(fault, length))
    return ill


def _shape(fault: str, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return by how many octaves, and which share of the values, are later in each of ``length`` windows."""
    whole = np.ones(length)
    match fault:
        case "+15 %" | "+25 %" | "+50 %":
            return whole * np.log2(1 + int(fault[1:3]) / 100), whole
        case "2 % x 16":
            return whole * 4.0, whole * 0.02
        case "0.5 % x 64":
            return whole * 6.0, whole * 0.005
        case "intermittent":
            # A minute on, a minute off.
            return np.where(np.arange(length) % 8 < 4, 1.0, 0.0), whole
        case "drift":
            return np.log2(np.linspace(1, 1.6, length)), whole
        case "one CPU":
            return whole * 2.0, whole / 8
    raise ValueError(fault)


def _phases(pools: int, random: np.random.Generator, windows: int) -> list[int]:
    """A job computes, communicates, writes a checkpoint: a few windows each, all nodes together."""
    phases: list[int] = []
    while len(phases) < windows:
        phases += [int(random.integers(pools))] * int(random.integers(2, 9))
    return phases[:windows]


def _bootstrap(intervals: np.ndarray, random: np.random.Generator, nodes: int) -> np.ndarray:
    """Return windows of real intervals, drawn with replacement, shape ``(nodes, n)``."""
    counts = random.multinomial(INTERVALS, np.full(len(intervals), 1 / len(intervals)), nodes)
    return np.asarray(counts @ intervals.astype(float))


def _partly(expected: np.ndarray, octaves: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return histograms ``(n, slots)`` of which ``share`` ``(n,)`` of the values are later by ``octaves`` ``(n,)``."""
    return expected * (1 - share)[:, None] + _later(expected * share[:, None], octaves)


def _later(expected: np.ndarray, octaves: np.ndarray) -> np.ndarray:
    """Return histograms ``(…, slots)`` moved by ``octaves`` ``(…)``, between two slots where need be."""
    size = expected.shape[-1]
    places = np.arange(size) - octaves[..., None] * 8
    below = np.floor(places).astype(int)
    part = places - below
    low = np.take_along_axis(expected, np.clip(below, 0, size - 1), -1) * (below >= 0) * (below < size)
    high = np.take_along_axis(expected, np.clip(below + 1, 0, size - 1), -1) * (below >= -1) * (below < size - 1)
    return np.asarray(low * (1 - part) + high * part)


def _series(path: Path) -> dict[Series, list[np.ndarray]]:
    metrics = {metric.table: metric for metric in METRICS.values() if metric.kind == "histogram"}
    found: dict[Series, list[np.ndarray]] = {}
    with RecordingReader(path) as reader:
        for number, windows in enumerate(reader):
            for window in windows:
                metric = metrics.get((window.probe, window.table))
                if metric is None or not has(window.rows, "slots"):
                    continue
                parts = [normalised(metric.by, row[metric.by]) if metric.by else "" for row in window.rows]
                for part in dict.fromkeys(parts):
                    chosen = [place for place, other in enumerate(parts) if other == part]
                    every = found.setdefault(Series(metric.name, part), [])
                    every += [np.zeros(SLOTS)] * (number - len(every))
                    every.append(window.rows["slots"][chosen].sum(axis=0).astype(float))
    return found
