"""Since when nodes are said to deviate, beside when they began to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sim.cluster import FAULTS, Cluster, Pool, make_cluster
from tracer.compare.deviation import Deviation, of_histograms
from tracer.compare.metrics import Series
from tracer.compare.onset import Onset
from tracer.compare.scan import LEAST_WINDOWS, baseline_of

__all__ = ["Onsets"]

_START, _EARLY, _LATER, _DRIFT = "from the start", "before a baseline", "later", "a drift, later"
_WINDOWS, _SHARE = 2, 0.1  # of a right answer: of all windows, whichever is more


@dataclass
class Onsets:
    """``said``: by kind, (the window in which it began, what is said) of every node with a fault that is found."""

    windows: int
    said: dict[str, list[tuple[int, Onset]]] = field(default_factory=dict)

    def add(self, cluster: Cluster, found: Mapping[int, Deviation]) -> None:
        """Count what was said of one cluster."""
        for node, fault in cluster.ill.items():
            if node in found:
                self.said.setdefault(self._kind(fault, cluster.onset), []).append((cluster.onset, found[node].since))

    def run(
        self,
        pools: Mapping[Series, Sequence[Pool]],
        clusters: int,
        random: np.random.Generator,
        nodes: int,
        length_ns: int,
    ) -> None:
        """Judge clusters with faults that began with the recording, or before there is a baseline."""
        early = range(LEAST_WINDOWS, baseline_of(self.windows))
        for fault in (one for one in FAULTS if one != "drift"):
            for began in [0, *random.choice(early, 1).tolist()] * clusters:
                chosen = pools[sorted(pools)[int(random.integers(len(pools)))]]
                cluster = make_cluster(chosen, [fault], random, nodes, self.windows, began)
                self.add(
                    cluster,
                    {one.node: one for one in of_histograms(cluster.slots, length_ns, cluster.first).deviations},
                )

    def lines(self) -> Iterator[str]:
        """Yield what was right."""
        titles = (
            f"{'found':>7}{'told when':>11}{'within 2':>10}{'10 %':>7}{'the start, wrongly':>20}{'told wrongly':>14}"
        )
        yield f"{'onset':<20}{titles}"
        for kind in (one for one in (_START, _EARLY, _LATER, _DRIFT) if one in self.said):
            told = [(began, since.window) for began, since in self.said[kind] if since.sure]
            close, near = (
                sum(_alike(*one, by) for one in told) for by in (_WINDOWS, max(_WINDOWS, _SHARE * self.windows))
            )
            start = sum(said == 0 < began for began, said in told)
            counts = f"{len(self.said[kind]):>7}{len(told):>11}{close:>10}{near:>7}{start:>20}{len(told) - near:>14}"
            yield f"{kind:<20}{counts}"

    def _kind(self, fault: str, began: int) -> str:
        if began == 0:
            return _START
        return _EARLY if began < baseline_of(self.windows) else _DRIFT if fault == "drift" else _LATER


def _alike(began: int, said: int, by: float) -> bool:
    return (began == 0) == (said == 0) and abs(began - said) <= by
