"""Healthy clusters of 8 to 20 nodes and recordings of half a minute: who is accused, and how surely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.cluster import HEALTHY, Pool, make_cluster
from tracer.compare.deviation import Deviation, of_histograms
from tracer.compare.limits import FEW_NODES
from tracer.compare.metrics import Series
from tracer.compare.suspect import confidence

__all__ = ["Brief"]

_MOST_NODES = 20
#: (windows, seconds of each): with a baseline of their own, and without.
_SHAPES = ((30, 1), (7, 4))
_NS = 10**9


@dataclass
class Brief:
    """``accused``: clusters of each shape in which anybody is, by the greatest confidence."""

    clusters: int = 0
    accused: dict[int, Counter[str]] = field(default_factory=lambda: {windows: Counter() for windows, _ in _SHAPES})

    def run(self, pools: Mapping[Series, Sequence[Pool]], clusters: int, random: np.random.Generator) -> None:
        """Judge so many clusters of each shape, in all series."""
        self.clusters += clusters
        for windows, seconds in _SHAPES * clusters:
            nodes = int(random.integers(FEW_NODES, _MOST_NODES + 1))
            found: dict[int, list[Deviation]] = {}
            for series in sorted(pools):
                cluster = make_cluster(pools[series], [HEALTHY], random, nodes, windows, intervals=seconds)
                for one in of_histograms(cluster.slots, seconds * _NS, cluster.first).deviations:
                    found.setdefault(one.node, []).append(one)
            sure = {confidence(every, nodes, seconds * _NS, 0.0) for every in found.values()}
            self.accused[windows].update([one for one in ("high", "medium", "low") if one in sure][:1])

    def lines(self) -> Iterator[str]:
        """Yield how many clusters had somebody accused."""
        for windows, seconds in _SHAPES:
            counts = self.accused[windows]
            told = ", ".join(f"{counts[one]} with {one} confidence" for one in ("high", "medium", "low"))
            yield (
                f"healthy, {FEW_NODES} to {_MOST_NODES} nodes, {windows} windows of {seconds} s, all series: somebody "
                f"accused in {counts.total()} of {self.clusters} clusters ({told})"
            )
