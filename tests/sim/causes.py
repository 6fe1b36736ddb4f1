"""What many nodes have together, and what nobody has: how often it is told as such, and who is accused meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.cluster import CAUSES, HEALTHY, INTERVALS, Pool, make_cluster
from tracer.compare.limits import FEW_NODES
from tracer.compare.metrics import Series
from tracer.compare.series import judge_histograms

__all__ = ["Causes"]

_MOST_NODES = 40
_NS = 10**9


@dataclass
class Causes:
    """By cause: how many ``drawn``, ``told`` as common, ``exactly`` of those that have it, ``accused`` anybody."""

    drawn: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    exactly: Counter[str] = field(default_factory=Counter)
    accused: Counter[str] = field(default_factory=Counter)

    def run(
        self, pools: Mapping[Series, Sequence[Pool]], clusters: int, random: np.random.Generator, windows: int = 38
    ) -> None:
        """Judge so many clusters of each cause, and without any, in each series."""
        for cause in (HEALTHY, *CAUSES):
            for series in sorted(pools) * clusters:
                nodes = int(random.integers(FEW_NODES, _MOST_NODES + 1))
                cluster = make_cluster(pools[series], [cause], random, nodes, windows)
                found, told = judge_histograms(series, cluster.slots, INTERVALS * _NS, cluster.first)
                self.drawn[cause] += 1
                self.told[cause] += bool(found.common)
                self.exactly[cause] += found.common.keys() == cluster.alike
                self.accused[cause] += any(one.deviation in found.deviations for one in told)

    def lines(self) -> Iterator[str]:
        """Yield one line for each cause."""
        for cause, drawn in self.drawn.items():
            yield (
                f"{cause}, {FEW_NODES} to {_MOST_NODES} nodes: told as common in {self.told[cause]} of {drawn} series, "
                f"with exactly its nodes in {self.exactly[cause]}; somebody accused in {self.accused[cause]}"
            )
