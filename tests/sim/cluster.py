"""Clusters of nodes as arrays of histograms: windows of real recordings, resampled, with one fault that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tracer.analysis.rows import has
from tracer.compare.limits import LEAST_LOST
from tracer.compare.metrics import METRICS, Series, normalised
from tracer.compare.scan import baseline_of
from tracer.compare.shapes import means_ns
from tracer.histogram import SLOTS
from tracer.recording import RecordingReader

__all__ = [
    "CAUSES",
    "FAULTS",
    "HEALTHY",
    "INTERVALS",
    "NONE",
    "Cluster",
    "Pool",
    "Story",
    "make_cluster",
    "others_like",
    "read_pools",
]

#: Intervals of a second in one window.
INTERVALS = 16
#: Faults of one node, and what none is one of.
FAULTS = ("+15 %", "+25 %", "+50 %", "2 % x 16", "0.5 % x 64", "intermittent", "drift", "one CPU")
HEALTHY = "healthy"
NONE = (HEALTHY, "victim", "common cause")
#: What nodes have together, of which share of them, and by how many octaves all their values are later.
CAUSES = {
    "common cause": (0.3, 0.8, np.log2(1.5)),
    "most change": (0.8, 1.0, np.log2(1.5)),
    "all change": (1.0, 1.0, 2.0),
    "two kinds": (0.25, 0.75, 1.0),
}
#: A series of so many values a second at least tells something about tails.
_LEAST_RATE = 50
#: Of so much time a second ten percent are as much as is told at all.
_LEAST_NS = 1e10 * LEAST_LOST

# How nodes and windows differ without a fault. The first two are those of references that measured clusters.
_NODES, _WINDOWS = 0.04, 0.03  # standard deviations, of the logarithm
_BURSTS, _MISSING, _SHORT = 0.02, 0.02, 0.05
_SKEW = 0.25  # of a window, standard deviation
# Slots that faults reach into, and bursts alone.
_MARGIN, _MARGIN_OF_BURSTS = 72, 40


@dataclass(frozen=True)
class Pool:
    """Histograms of one series in one real recording, shape ``(intervals, SLOTS)``."""

    series: Series
    intervals: np.ndarray


@dataclass(frozen=True)
class Story:
    """What all nodes of a cluster go through.

    Attributes:
        drawn: real intervals of each pool, ``(intervals, n)``, of slots from ``first`` on.
        phases: which pool each window is like.
        drift: octaves by which all are slower, of each window.
        onset: the window from which on faults are there.
        intervals: of a second, in each window.
    """

    drawn: tuple[np.ndarray, ...]
    first: int
    phases: Sequence[int]
    drift: np.ndarray
    onset: int
    intervals: int = INTERVALS


_NO_STORY = Story((), 0, (), np.zeros(0), 0)


@dataclass(frozen=True)
class Cluster:
    """Histograms ``(nodes, windows, n)`` from slot ``first`` on; ``ill`` have their faults from window ``onset`` on.

    ``alike`` are those that have one of ``CAUSES`` together.
    """

    slots: np.ndarray
    first: int
    onset: int
    ill: Mapping[int, str] = field(default_factory=dict)
    story: Story = _NO_STORY
    alike: frozenset[int] = frozenset()


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
    pools: Sequence[Pool],
    faults: Sequence[str],
    random: np.random.Generator,
    nodes: int,
    windows: int,
    onset: int | None = None,
    intervals: int = INTERVALS,
) -> Cluster:
    """Draw a cluster whose nodes all go through the same phases, each phase like one of ``pools``.

    ``faults``: each of one node; or one of ``NONE`` or ``CAUSES``. They begin with window ``onset``; by default with
    any after the baseline. A window has so many ``intervals`` of a second.
    """
    story = _story(pools, random, windows, _MARGIN_OF_BURSTS if tuple(faults) == (HEALTHY,) else _MARGIN)
    story = replace(story, onset=story.onset if onset is None else onset, intervals=intervals)
    expected, _ = _expected(story, random, nodes, slice(0, windows))
    ill, alike = _infect(expected, faults, story.onset, random)
    expected[random.random((nodes, windows)) < _MISSING] = 0
    for node in np.flatnonzero(random.random(nodes) < _SHORT):
        if node not in ill:
            expected[node, int(random.integers(windows // 2, windows)) :] = 0
    return Cluster(_counted(expected, random), story.first, story.onset, ill, story, alike)


def others_like(story: Story, fault: str, random: np.random.Generator, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw more nodes of the same job, in the windows from the onset on, all with ``fault``, if it is one.

    Returns histograms ``(nodes, windows, n)`` and by how many octaves each node is slower anyway, ``(nodes,)``.
    """
    expected, octaves = _expected(story, random, nodes, slice(story.onset, len(story.phases)))
    if fault in FAULTS:
        after, share = _shape(fault, expected.shape[1])
        for node in range(nodes):
            expected[node] = _partly(expected[node], after, share)
    return _counted(expected, random), octaves


def _story(pools: Sequence[Pool], random: np.random.Generator, windows: int, margin: int) -> Story:
    onset = int(random.integers(baseline_of(windows) + 1, max(windows - 8, baseline_of(windows) + 2)))
    phases = _phases(len(pools), random, windows)
    used = np.flatnonzero(np.any([pool.intervals.any(axis=0) for pool in pools], axis=0))
    first, last = max(0, int(used[0]) - margin), min(SLOTS, int(used[-1]) + margin)
    drawn = tuple(pool.intervals[:, first:last].astype(np.float32) for pool in pools)
    return Story(drawn, first, phases, random.normal(0, 0.15, windows) / np.log(2), onset)


def _expected(story: Story, random: np.random.Generator, nodes: int, windows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Return what healthy nodes do in some of the windows, bursts included, and by how much they always differ."""
    places = range(len(story.phases))[windows]
    own = random.normal(0, _NODES, nodes) / np.log(2)
    octaves = own[:, None] + random.normal(0, _WINDOWS, (nodes, len(places))) / np.log(2) + story.drift[windows]
    expected = np.empty((nodes, len(places), story.drawn[0].shape[1]), np.float32)
    for column, window in enumerate(places):
        # Clocks are skewed: a node may still be in the phase before.
        late = np.abs(random.normal(0, _SKEW, nodes)).clip(0, 1)[:, None]
        now = _bootstrap(story, window, random, nodes)
        before = _bootstrap(story, max(0, window - 1), random, nodes)
        expected[:, column] = _later(now * (1 - late) + before * late, octaves[:, column])
    bursts = random.random(expected.shape[:2]) < _BURSTS
    expected[bursts] = _partly(
        expected[bursts], random.uniform(1, 3, bursts.sum()), random.uniform(0.1, 1, bursts.sum())
    )
    return expected, own


def _counted(expected: np.ndarray, random: np.random.Generator) -> np.ndarray:
    slots = np.empty(expected.shape, np.uint32)
    for window in range(expected.shape[1]):
        slots[:, window] = random.poisson(expected[:, window])
    return slots


def _infect(
    expected: np.ndarray, faults: Sequence[str], onset: int, random: np.random.Generator
) -> tuple[dict[int, str], frozenset[int]]:
    """Apply the faults to ``expected``; return the nodes that are to be found, and those that are alike."""
    nodes, windows, _ = expected.shape
    after, length = expected[:, onset:], windows - onset
    chosen = random.choice(nodes, len(faults), replace=False)
    match faults:
        case [none] if none == HEALTHY:
            return {}, frozenset()
        case ["victim"]:
            # It waits for others: fewer of everything, none of it slower.
            after[chosen] *= 0.3
            return {}, frozenset()
        case [cause] if cause in CAUSES:
            least, most, octaves = CAUSES[cause]
            many = random.choice(nodes, int(nodes * random.uniform(least, most)), replace=False)
            part = expected if cause == "two kinds" else after
            for node in many:
                part[node] = _later(part[node], np.full(part.shape[1], octaves))
            return {}, frozenset(many.tolist())
    ill = {int(node): fault for node, fault in zip(chosen, faults, strict=True)}
    for node, fault in ill.items():
        after[node] = _partly(after[node], *_shape(fault, length))
    return ill, frozenset()


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


def _bootstrap(story: Story, window: int, random: np.random.Generator, nodes: int) -> np.ndarray:
    """Return windows of real intervals, drawn with replacement, shape ``(nodes, n)``."""
    real = story.drawn[story.phases[window]]
    counts = random.multinomial(story.intervals, np.full(len(real), 1 / len(real)), nodes)
    return np.asarray(counts.astype(np.float32) @ real)


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
