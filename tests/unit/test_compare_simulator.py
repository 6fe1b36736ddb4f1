"""The simulator's own answers: what it says it did to a cluster is what it did."""

from __future__ import annotations

import numpy as np
import pytest
from sim.brief import Brief
from sim.causes import Causes
from sim.cluster import CAUSES, FAULTS, HEALTHY, INTERVALS, NONE, Cluster, Pool, make_cluster, read_pools
from sim.oracle import recall_of_oracle
from sim.recordings import DEMO, moved
from sim.rivals import RIVALS, in_a_row
from sim.score import OURS, Counts, Scores, told, upper_bound

from tracer.compare.metrics import Series
from tracer.compare.robust import medians
from tracer.compare.shapes import centroids, means_ns
from tracer.histogram import SLOTS


@pytest.fixture(scope="module")
def pools() -> dict[Series, list[Pool]]:
    return read_pools([DEMO])


def drawn(pools: dict[Series, list[Pool]], fault: str, part: str = "NET_RX") -> Cluster:
    chosen = next(found for series, found in pools.items() if series.part == part)
    return make_cluster(chosen, [fault], np.random.default_rng(7), 24, 38)


def test_windows_are_those_of_the_recording(pools: dict[Series, list[Pool]]):
    cluster = drawn(pools, "healthy")
    real = next(found for series, found in pools.items() if series.part == "NET_RX")[0].intervals
    usual = np.median(cluster.slots.sum(axis=2))
    assert usual == pytest.approx(real.sum() / len(real) * INTERVALS, rel=0.05)
    middle = np.nanmedian(centroids(cluster.slots, cluster.first)[0])
    assert middle == pytest.approx(centroids(real.sum(axis=0))[0], abs=0.3)


@pytest.mark.parametrize("fault, ratio", [("+50 %", 1.5), ("2 % x 16", 1.3), ("0.5 % x 64", 1.315), ("one CPU", 1.375)])
def test_a_fault_makes_its_node_slower_by_what_it_says(pools: dict[Series, list[Pool]], fault: str, ratio: float):
    cluster = drawn(pools, fault)
    (ill,) = cluster.ill
    means = means_ns(cluster.slots, cluster.first)
    # Medians: every node has bursts.
    change = medians(means[:, cluster.onset :], 1) / medians(means[:, : cluster.onset], 1)
    assert change[ill] / np.nanmedian(change) == pytest.approx(ratio, rel=0.1)


def test_victims_and_common_causes_have_no_ill_node(pools: dict[Series, list[Pool]]):
    assert all(not drawn(pools, none).ill for none in (*NONE, *CAUSES))
    assert all([*drawn(pools, fault).ill.values()] == [fault] for fault in FAULTS)


def test_faults_of_several_nodes_are_in_one_cluster(pools: dict[Series, list[Pool]]):
    chosen = next(iter(pools.values()))
    assert sorted(make_cluster(chosen, FAULTS, np.random.default_rng(1), 24, 38).ill.values()) == sorted(FAULTS)


def test_moving_values_keeps_their_number():
    slots = np.zeros(SLOTS, np.uint32)
    slots[100:120] = 50
    assert moved(slots, 8, 0.5).sum() == slots.sum()
    assert moved(slots, 8, 0.5)[120:128].tolist() == [25] * 8


def test_a_run_is_as_long_as_its_shortest_score():
    assert in_a_row(np.array([[1, 9, 9, 9, 9, 1], [9, 9, 9, 1, 9, 9], [np.nan] * 6])).tolist() == [9, 1, -np.inf]


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_sees_a_node_that_is_twice_as_slow(pools: dict[Series, list[Pool]], name: str):
    slots = drawn(pools, "healthy").slots
    slots[5, 20:, 8:] = slots[5, 20:, :-8]
    assert int(in_a_row(RIVALS[name](slots)).argmax()) == 5


def test_the_oracle_takes_as_long_as_bursts_make_it(pools: dict[Series, list[Pool]]):
    found = recall_of_oracle(drawn(pools, "+50 %").story, "+50 %", np.random.default_rng(3))
    assert (found[:2] == 0).all(), "two windows may be a burst"
    assert found[5] > 0.95
    well = recall_of_oracle(drawn(pools, "healthy").story, "healthy", np.random.default_rng(3))
    assert well.max() < 0.05, "nothing is there to be found"


def test_scores_count_nodes():
    counts = Counts()
    cluster = Cluster(np.zeros((4, 1, 1)), 0, 0, {1: "+50 %"})
    counts.add(cluster, {1, 2})
    counts.add(cluster, set())
    assert (counts.hits, counts.accused, counts.missed) == (1, 1, 1)
    assert counts.precision == counts.recall == counts.f1 == 0.5
    assert counts.found == {"+50 %": 1}


def test_a_small_run_tells_all_of_it(pools: dict[Series, list[Pool]]):
    scores = Scores(16, 38)
    scores.run({series: found for series, found in pools.items() if series.part == "NET_RX"}, 1, 1, 1)
    lines = "\n".join(told(scores))
    assert all(name in lines for name in (OURS, *RIVALS, *FAULTS, "NET_RX softirq run time", "the oracle's F1"))
    found = {kind: len(said) for kind, said in scores.onsets.said.items()}
    assert found["later"] >= 5 and found["from the start"] >= 3 and found["before a baseline"] >= 2
    assert all(not since.sure or (since.window == 0) == (began == 0) for began, since in scores.onsets.said["later"])
    assert scores.counts[OURS].precision == 1 and scores.counts[OURS].f1 > 0.9
    assert scores.well_days[OURS] > scores.well_days["KS"] > 0


@pytest.mark.parametrize("events, most", [(0, 2.996), (1, 4.744), (5, 10.513)])
def test_the_bound_of_rare_events_is_that_of_a_poisson_distribution(events: int, most: float):
    assert upper_bound(events) == pytest.approx(most, abs=0.001)


def test_a_few_healthy_nodes_and_half_a_minute_accuse_nobody(pools: dict[Series, list[Pool]]):
    brief = Brief()
    brief.run(pools, 4, np.random.default_rng(1))
    assert all(not counts for counts in brief.accused.values())
    assert all("accused in 0 of 4 clusters" in line for line in brief.lines())


def test_what_nodes_have_together_is_told_and_nobody_accused(pools: dict[Series, list[Pool]]):
    causes = Causes()
    causes.run(
        {series: found for series, found in pools.items() if series.part == "NET_RX"}, 3, np.random.default_rng(1)
    )
    assert all(causes.told[cause] >= causes.drawn[cause] - 1 for cause in CAUSES)
    assert causes.exactly["two kinds"] == causes.told["two kinds"]
    assert causes.accused.total() == causes.told[HEALTHY] == 0
    assert len([*causes.lines()]) == 1 + len(CAUSES)
