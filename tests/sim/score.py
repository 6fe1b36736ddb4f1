"""Precision, recall and delay of the detector and of its rivals on the same clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.cluster import FAULTS, HEALTHY, INTERVALS, Cluster, Pool, make_cluster
from sim.rivals import RIVALS, in_a_row
from tracer.compare.deviation import of_histograms
from tracer.compare.metrics import Series

__all__ = ["OURS", "Counts", "Scores", "told"]

OURS = "foreshock"
_HEALTHY_TIMES = 10
_LOOKS = (3, 4, 5, 6, 8, 12, 16, 24)
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
        self.hits += len(flagged & cluster.ill)
        self.accused += len(flagged - cluster.ill)
        self.missed += len(cluster.ill - flagged)
        self.found[cluster.fault] += bool(flagged & cluster.ill)


class Scores:
    """Runs every method over the same clusters.

    The rivals get the threshold that is best for them on clusters of another seed; the detector has its own.
    """

    def __init__(self, nodes: int, windows: int) -> None:
        self.nodes, self.windows = nodes, windows
        self.counts: dict[str, Counts] = {name: Counts() for name in (OURS, *RIVALS)}
        self.thresholds: dict[str, float] = {}
        self.drawn: Counter[str] = Counter()
        self.healthy_accused: Counter[str] = Counter()
        self.delays: dict[str, list[int]] = {}

    def run(self, pools: Mapping[Series, Sequence[Pool]], clusters: int, seed: int) -> None:
        """Judge ``clusters`` of each fault, and ten times as many healthy ones."""
        self._tune(pools, max(4, clusters // 4), seed + 1)
        for cluster in self._clusters(pools, clusters, seed):
            self.drawn[cluster.fault] += 1
            for name, flagged in self._judged(cluster).items():
                self.counts[name].add(cluster, flagged)
                self.healthy_accused[name] += len(flagged) if cluster.fault == "healthy" else 0
                if name == OURS and flagged & cluster.ill:
                    self.delays.setdefault(cluster.fault, []).append(_delay(cluster))

    @property
    def node_days(self) -> float:
        """How long healthy nodes were watched."""
        return self.drawn["healthy"] * self.nodes * self.windows * INTERVALS / _DAY_S

    def _clusters(self, pools: Mapping[Series, Sequence[Pool]], number: int, seed: int) -> Iterator[Cluster]:
        random = np.random.default_rng(seed)
        series = sorted(pools)
        for fault in (*FAULTS, *HEALTHY):
            for _ in range(number * (_HEALTHY_TIMES if fault == "healthy" else 1)):
                chosen = pools[series[int(random.integers(len(series)))]]
                yield make_cluster(chosen, fault, random, self.nodes, self.windows)

    def _judged(self, cluster: Cluster) -> dict[str, set[int]]:
        found = {OURS: _flagged(cluster.slots, cluster.first)}
        for name, method in RIVALS.items():
            scores = in_a_row(method(cluster.slots))
            found[name] = set(np.flatnonzero(scores > self.thresholds[name]).tolist())
        return found

    def _tune(self, pools: Mapping[Series, Sequence[Pool]], clusters: int, seed: int) -> None:
        kept: dict[str, list[tuple[np.ndarray, Cluster]]] = {name: [] for name in RIVALS}
        for cluster in self._clusters(pools, clusters, seed):
            bare = Cluster(cluster.slots[:0], 0, cluster.fault, cluster.onset, cluster.ill)
            for name, method in RIVALS.items():
                kept[name].append((in_a_row(method(cluster.slots)), bare))
        for name, scored in kept.items():
            self.thresholds[name] = max(np.linspace(0.5, 30, 119), key=lambda threshold: _f1(scored, threshold))


def _f1(scored: Sequence[tuple[np.ndarray, Cluster]], threshold: float) -> float:
    counts = Counts()
    for scores, cluster in scored:
        counts.add(cluster, set(np.flatnonzero(scores > threshold).tolist()))
    return counts.f1


def _flagged(slots: np.ndarray, first: int) -> set[int]:
    return {one.node for one in of_histograms(slots, INTERVALS * _NS, first).deviations}


def _delay(cluster: Cluster) -> int:
    """Return after how many windows of the fault it is found, when the recording ends there."""
    for windows in _LOOKS:
        if cluster.ill <= _flagged(cluster.slots[:, : cluster.onset + windows], cluster.first):
            return windows
    return cluster.slots.shape[1] - cluster.onset


def told(scores: Scores) -> Iterator[str]:
    """Yield the scores as lines."""
    yield f"{scores.nodes} nodes, {scores.windows} windows of {INTERVALS} s; {sum(scores.drawn.values())} clusters"
    yield ""
    yield f"{'':<14}{'precision':>10}{'recall':>8}{'F1':>8}{'accused of healthy':>20}{'per 1,000 node-days':>21}"
    for name, counts in scores.counts.items():
        accused = scores.healthy_accused[name]
        per = accused / max(scores.node_days, 1e-9) * 1000
        yield (f"{name:<14}{counts.precision:>10.3f}{counts.recall:>8.3f}{counts.f1:>8.3f}{accused:>20}{per:>21.1f}")
    yield f"healthy nodes were watched for {scores.node_days:.0f} node-days, each judged once in ten minutes"
    if not scores.healthy_accused[OURS]:
        # Of nothing seen in so long, a rate of three in that time would be seen with 95 %.
        yield f"none accused: with 95 % confidence less than {3 / scores.node_days * 1000:.1f} per 1,000 node-days"
    yield ""
    yield f"{'recall':<14}" + "".join(f"{name:>13}" for name in scores.counts) + f"{'windows':>10}"
    for fault in FAULTS:
        drawn = max(1, scores.drawn[fault])
        found = "".join(f"{counts.found[fault] / drawn:>13.2f}" for counts in scores.counts.values())
        delays = scores.delays.get(fault)
        yield f"{fault:<14}{found}" + (f"{np.median(delays):>10.0f}" if delays else f"{'–':>10}")
