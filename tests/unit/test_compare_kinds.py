"""Nodes of which only the tails are longer from the start on, so many that none is an exception, are told as a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from sim.cluster import HEALTHY, INTERVALS, Cluster, Pool, make_cluster, read_pools
from sim.recordings import DEMO

from tracer.compare.deviation import Findings
from tracer.compare.kinds import tails
from tracer.compare.metrics import Series
from tracer.compare.series import findings_of

LENGTH_NS, WINDOWS = INTERVALS * 1e9, 38


@pytest.fixture(scope="module")
def pools() -> Mapping[Series, Sequence[Pool]]:
    return read_pools([DEMO])


def drawn(pools: Mapping[Series, Sequence[Pool]], seed: int, nodes: int) -> tuple[Cluster, np.random.Generator]:
    random = np.random.default_rng(seed)
    series = sorted(pools)[seed % len(pools)]
    return make_cluster(pools[series], [HEALTHY], random, nodes, WINDOWS), random


def with_tails(slots: np.ndarray, of: Sequence[int], share: float, octaves: int, random: np.random.Generator) -> None:
    """Make a share of some nodes' values take longer by so many octaves, in place."""
    by = 8 * octaves
    for node in of:
        moved = random.binomial(slots[node], share).astype(slots.dtype)
        slots[node] -= moved
        slots[node, :, by:] += moved[:, :-by]


def judged(cluster: Cluster) -> Findings:
    return findings_of(cluster.slots, LENGTH_NS, cluster.first)


@pytest.mark.parametrize(("share", "octaves"), [(0.02, 4), (0.05, 3)])
def test_tails_of_many_nodes_from_the_start_are_told_with_exactly_those(
    pools: Mapping[Series, Sequence[Pool]], share: float, octaves: int
):
    told = []
    for seed in range(12):
        cluster, random = drawn(pools, seed, nodes=12 + 2 * seed)
        ill = sorted(random.choice(len(cluster.slots), len(cluster.slots) // 3, replace=False).tolist())
        with_tails(cluster.slots, ill, share, octaves, random)
        found = judged(cluster)
        told.append(sorted(found.common) == ill and found.lasting and found.deviations == ())
        assert found.common == {} or told[-1]
    # Of waits that scatter over decades it can't always be told.
    assert sum(told) >= 10


def test_healthy_nodes_are_of_one_kind(pools: Mapping[Series, Sequence[Pool]]):
    for seed in range(30):
        cluster, _ = drawn(pools, seed, nodes=8 + seed)
        assert tails(cluster.slots, cluster.first, LENGTH_NS) == {}


@pytest.mark.parametrize("many", [1, 2, 4])
def test_a_few_are_no_kind(pools: Mapping[Series, Sequence[Pool]], many: int):
    for seed in range(3):
        cluster, random = drawn(pools, seed, nodes=24)
        with_tails(cluster.slots, range(many), 0.05, 4, random)
        assert tails(cluster.slots, cluster.first, LENGTH_NS) == {}


def test_another_fault_beside_two_kinds_is_still_found(pools: Mapping[Series, Sequence[Pool]]):
    cluster, random = drawn(pools, 2, nodes=24)
    with_tails(cluster.slots, range(8), 0.05, 4, random)
    with_tails(cluster.slots[:, 20:], [20], 0.9, 1, random)
    found = judged(cluster)
    assert sorted(found.common) == [*range(8)]
    assert [(one.node, one.lasting) for one in found.deviations] == [(20, False)]


def test_fewer_than_eight_or_hardly_any_values_tell_nothing(pools: Mapping[Series, Sequence[Pool]]):
    cluster, random = drawn(pools, 2, nodes=24)
    with_tails(cluster.slots, range(12), 0.05, 4, random)
    assert tails(cluster.slots, cluster.first, LENGTH_NS)
    assert tails(cluster.slots[8:15], cluster.first, LENGTH_NS) == {}
    assert tails(cluster.slots, cluster.first, LENGTH_NS * 1e9) == {}
    assert tails(np.minimum(cluster.slots, 0), cluster.first, LENGTH_NS) == {}
