"""Precision, recall and delay of the detector and of its rivals on the same clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, factorial

import numpy as np

from sim.cluster import FAULTS, HEALTHY, INTERVALS, NONE, Cluster, Pool, make_cluster
from sim.onsets import Onsets
from sim.oracle import recall_of_oracle
from sim.rivals import RIVALS, in_a_row
from tracer.compare.deviation import Deviation, of_histograms
from tracer.compare.metrics import Series

__all__ = ["OURS", "Counts", "Scores", "told", "upper_bound"]

OURS = "foreshock"
_ONE_OF = 100
_LOOKS = (4, 5, 6, 7, 8, 10, 12, 16, 20, 24)
_ONE_SIDED = 0.05
_DAY_S = 86400
_NS = 10**9


@dataclass
class Counts:
    """Nodes found rightly, accused wrongly and missed; ``found`` by fault."""

    hits: int = 0
    accused: int = 0
    missed: int = 0
    found: Counter[str] = field(default_factory=Counter)

    @property
    def precision(self) -> float:
        return self.hits / max(1, self.hits + self.accused)

    @property
    def recall(self) -> float:
        return self.hits / max(1, self.hits + self.missed)

    @property
    def f1(self) -> float:
        return 2 * self.hits / max(1, 2 * self.hits + self.accused + self.missed)

    def add(self, cluster: Cluster, flagged: set[int]) -> None:
        """Count what was said of one cluster."""
        ill = set(cluster.ill)
        self.hits += len(flagged & ill)
        self.accused += len(flagged - ill)
        self.missed += len(ill - flagged)
        self.found.update(cluster.ill[node] for node in flagged & ill)


class Scores:
    """Runs every method over the same clusters.

    The rivals get the threshold that is best for them on clusters of another seed; the detector has its own.
    """

    def __init__(self, nodes: int, windows: int) -> None:
        self.nodes, self.windows = nodes, windows
        self.counts: dict[str, Counts] = {name: Counts() for name in (OURS, *RIVALS)}
        self.thresholds: dict[str, float] = {}
        self.drawn: Counter[str] = Counter()
        self.well_days: dict[str, float] = dict.fromkeys(self.counts, 0.0)
        self.well_accused: Counter[str] = Counter()
        self.delays: dict[str, list[int]] = {}
        self.bounds: dict[str, list[np.ndarray]] = {}
        #: By series: (whether the fault is found, how likely the oracle finds it).
        self.found: dict[str, list[tuple[bool, float]]] = {}
        self.onsets = Onsets(windows)

    def run(self, pools: Mapping[Series, Sequence[Pool]], clusters: int, healthy: int, seed: int) -> None:
        """Judge ``clusters`` of each fault and as many healthy ones; foreshock alone judges ``healthy`` more."""
        if clusters:
            self._tune(pools, max(2, clusters // 4), seed + 1)
        random, more = np.random.default_rng(seed), np.random.default_rng(seed + 2)
        for title, cluster in self._clusters(pools, clusters, random):
            self.drawn.update(cluster.ill.values())
            found = _found(cluster.slots, cluster.first)
            self.onsets.add(cluster, found)
            for name, flagged in {OURS: set(found), **self._of_rivals(cluster)}.items():
                self.counts[name].add(cluster, flagged)
                self._watched(name, cluster, flagged)
            for node, windows in _delays(cluster).items():
                self.delays.setdefault(cluster.ill[node], []).append(windows)
            for node, fault in cluster.ill.items():
                bound = recall_of_oracle(cluster.story, fault, more)
                self.bounds.setdefault(fault, []).append(bound)
                self.found.setdefault(title, []).append((node in found, float(bound[-1])))
        self.onsets.run(pools, clusters, random, self.nodes, INTERVALS * _NS)
        for _ in range(healthy):
            cluster = make_cluster(pools[_any(pools, random)], [HEALTHY], random, self.nodes, self.windows)
            self._watched(OURS, cluster, set(_found(cluster.slots, cluster.first)))

    def _watched(self, name: str, cluster: Cluster, flagged: set[int]) -> None:
        well = self.nodes - len(cluster.ill)
        self.well_days[name] += well * self.windows * INTERVALS / _DAY_S
        self.well_accused[name] += len(flagged - set(cluster.ill))

    def _clusters(
        self, pools: Mapping[Series, Sequence[Pool]], number: int, random: np.random.Generator
    ) -> Iterator[tuple[str, Cluster]]:
        # Of so many nodes one may have each fault, and still they are few.
        single = [(fault,) for fault in FAULTS]
        every = [FAULTS] if self.nodes >= _ONE_OF * len(FAULTS) else single
        for faults in (*every, *((none,) for none in NONE)):
            for _ in range(number):
                series = _any(pools, random)
                yield series.title, make_cluster(pools[series], faults, random, self.nodes, self.windows)

    def _of_rivals(self, cluster: Cluster) -> dict[str, set[int]]:
        found = {}
        for name, method in RIVALS.items():
            scores = in_a_row(method(cluster.slots))
            found[name] = set(np.flatnonzero(scores > self.thresholds[name]).tolist())
        return found

    def _tune(self, pools: Mapping[Series, Sequence[Pool]], clusters: int, seed: int) -> None:
        kept: dict[str, list[tuple[np.ndarray, Cluster]]] = {name: [] for name in RIVALS}
        random = np.random.default_rng(seed)
        for _, cluster in self._clusters(pools, clusters, random):
            bare = replace(cluster, slots=cluster.slots[:0])
            for name, method in RIVALS.items():
                kept[name].append((in_a_row(method(cluster.slots)), bare))
        for name, scored in kept.items():
            self.thresholds[name] = max(np.linspace(0.5, 30, 119), key=lambda threshold: _f1(scored, threshold))


def _f1(scored: Sequence[tuple[np.ndarray, Cluster]], threshold: float) -> float:
    counts = Counts()
    for scores, cluster in scored:
        counts.add(cluster, set(np.flatnonzero(scores > threshold).tolist()))
    return counts.f1


def _any(pools: Mapping[Series, Sequence[Pool]], random: np.random.Generator) -> Series:
    return sorted(pools)[int(random.integers(len(pools)))]


def _found(slots: np.ndarray, first: int) -> dict[int, Deviation]:
    return {one.node: one for one in of_histograms(slots, INTERVALS * _NS, first).deviations}


def _delays(cluster: Cluster) -> dict[int, int]:
    """Return after how many windows of its fault a node is found, when the recordings end there, as far as it is."""
    found: dict[int, int] = {}
    for windows in _LOOKS:
        if len(found) == len(cluster.ill) or cluster.onset + windows > cluster.slots.shape[1]:
            break
        flagged = set(_found(cluster.slots[:, : cluster.onset + windows], cluster.first))
        found |= {node: windows for node in flagged & set(cluster.ill) if node not in found}
    return found


def upper_bound(events: int) -> float:
    """Return the mean of a Poisson distribution that makes so few events in one of twenty cases: the upper bound."""

    def chance(mean: float) -> float:
        return sum(exp(-mean) * mean**number / factorial(number) for number in range(events + 1))

    low, high = 0.0, 10.0 + 3 * events
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) > _ONE_SIDED else (low, middle)
    return high


def told(scores: Scores) -> Iterator[str]:
    """Yield the scores as lines."""
    yield f"{scores.nodes} nodes, {scores.windows} windows of {INTERVALS} s; {sum(scores.drawn.values())} faults"
    if scores.drawn:
        yield from ("", *_quality(scores), "", *_recall(scores), "", *_missed(scores), "", *scores.onsets.lines(), "")
    accused, days = scores.well_accused[OURS], scores.well_days[OURS]
    if days:
        yield (
            f"{OURS}: {accused} false alarms in {days:.0f} node-days, with 95 % confidence less than "
            f"{1000 * upper_bound(accused) / days:.1f} per 1,000; each node is judged once in ten minutes"
        )


def _quality(scores: Scores) -> Iterator[str]:
    titles = f"{'precision':>10}{'recall':>8}{'F1':>8}{'threshold':>11}"
    yield f"{'':<14}{titles}{'accused of well nodes':>23}{'in node-days':>14}"
    for name, counts in scores.counts.items():
        limit = f"{scores.thresholds[name]:.2f}" if name in scores.thresholds else "its own"
        quality = f"{counts.precision:>10.3f}{counts.recall:>8.3f}{counts.f1:>8.3f}"
        yield f"{name:<14}{quality}{limit:>11}{scores.well_accused[name]:>23}{scores.well_days[name]:>14.0f}"


def _recall(scores: Scores) -> Iterator[str]:
    names = "".join(f"{name:>13}" for name in scores.counts)
    yield f"{'recall':<14}{names}{'oracle':>8}{'windows until found':>21}{'90 %':>6}{'oracle':>8}"
    for fault in FAULTS:
        drawn = max(1, scores.drawn[fault])
        found = "".join(f"{counts.found[fault] / drawn:>13.2f}" for counts in scores.counts.values())
        delays = np.array(scores.delays.get(fault, [np.nan]))
        bounds = scores.bounds.get(fault, [])
        most = np.mean([one[-1] for one in bounds]) if bounds else np.nan
        soonest = np.median([_soonest(one) for one in bounds]) if bounds else np.nan
        ours = f"{np.median(delays):>21.0f}{np.percentile(delays, 90):>6.0f}"
        yield f"{fault:<14}{found}{most:>8.2f}{ours}{soonest:>8.0f}"


def _missed(scores: Scores) -> Iterator[str]:
    every = [one for found in scores.found.values() for one in found]
    most = np.mean([bound for _, bound in every])
    missed = [bound for hit, bound in every if not hit]
    yield (
        f"the oracle's F1 is {2 * most / (1 + most):.3f}; of {len(missed)} faults that {OURS} misses it finds "
        f"{sum(missed):.1f}"
    )
    for title, found in sorted(scores.found.items()):
        ours, oracle = (np.mean(column) for column in zip(*found, strict=True))
        yield f"{title:<40}{len(found):>4} faults, recall {ours:.2f}, oracle {oracle:.2f}"


def _soonest(found: np.ndarray) -> int:
    """Return after how many windows half of the nodes are found; one more than there are where never."""
    reached = np.flatnonzero(found >= 0.5)
    return int(reached[0]) + 1 if reached.size else len(found) + 1
