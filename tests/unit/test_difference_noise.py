"""What is beyond the noise of two sides' own windows: intervals that hold together, memory, few values, cost."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim.diffs import NOISES, apart_in_time, judged
from sim.pairs import CHANGES, Wobble, make_side, real_windows
from sim.recordings import DEMO, moved

from tracer.analysis.statistics import Statistics
from tracer.compare.metrics import Series
from tracer.compare.node import Node
from tracer.compare.quantiles import log_quantiles
from tracer.difference import limits
from tracer.difference.changes import Changes, changes_of
from tracer.difference.measures import Blocks, Measure
from tracer.difference.noise import apart
from tracer.histogram import GROWTH, SLOTS, slot_of

RUN = Series("softirq.run", "NET_RX")
CALM = Wobble()


@pytest.fixture(scope="module")
def windows() -> dict[Series, np.ndarray]:
    return real_windows(DEMO)


def compared(windows: dict[Series, np.ndarray], change: str = "none", seed: int = 1, number: int = 40) -> Changes:
    random = np.random.default_rng(seed)
    before, after = (make_side(windows, number, random, CALM, changed) for changed in ({}, {RUN: change}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return changes_of([before], after)


def normal(random: np.random.Generator, blocks: int, measures: int, memory: float = 0.0) -> np.ndarray:
    """Blocks of standard normal noise, each like the one before by ``memory``."""
    values = random.normal(size=(blocks, measures))
    for place in range(1, blocks):
        values[place] = memory * values[place - 1] + math.sqrt(1 - memory**2) * values[place]
    return values


@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_all_intervals_together_miss_as_rarely_as_they_say(memory: float):
    random, missed = np.random.default_rng(1), 0
    for _ in range(50):
        found = apart([normal(random, 10, 12, memory)], normal(random, 10, 12, memory), (60.0, 60.0))
        missed += bool((np.abs(found.after - found.before) > found.half).any())
    # 2 % are meant: more than four of 50 would be seen in one of two hundred runs.
    assert missed <= 4


def test_memory_is_seen_and_widens_the_intervals():
    random = np.random.default_rng(2)
    alone, alike = (
        [apart([normal(random, 10, 20, memory)], normal(random, 10, 20, memory), (1.0, 1.0)) for _ in range(10)]
        for memory in (0.0, 0.7)
    )
    assert np.mean([one.memory for one in alone]) < 0.2 < 0.5 < np.mean([one.memory for one in alike])
    assert np.mean([one.half.mean() for one in alike]) > 1.3 * np.mean([one.half.mean() for one in alone])


def test_a_moment_is_held_against_the_noise_of_such_moments():
    """The long side goes up and down slowly; the short one is one of its moments, and scatters little in itself."""
    random = np.random.default_rng(3)
    long = random.normal(size=(10, 1))
    short = 2 + random.normal(0, 0.01, (10, 1))
    assert abs(2 - long.mean()) < apart([long], short, (600.0, 30.0)).half[0]
    assert abs(2 - long.mean()) > apart([long], short, (600.0, 600.0)).half[0]


def test_the_same_sides_give_the_same_answer():
    sides = normal(np.random.default_rng(4), 10, 5), normal(np.random.default_rng(5), 9, 5)
    first, again = (apart([sides[0]], sides[1], (1.0, 1.0)) for _ in range(2))
    assert np.array_equal(first.half, again.half)


def test_too_few_blocks_tell_nothing():
    values = normal(np.random.default_rng(6), 10, 2)
    values[limits.LEAST_BLOCKS - 1 :, 1] = np.nan
    found = apart([values], normal(np.random.default_rng(7), 10, 2), (1.0, 1.0))
    assert np.isfinite(found.half[0]) and np.isnan([found.half[1], found.before[1], found.after[1]]).all()


@pytest.mark.parametrize("seed", range(8))
def test_nothing_that_did_not_change_is_told(windows: dict[Series, np.ndarray], seed: int):
    changes = compared(windows, seed=seed)
    assert not [one for kind in ("slower", "faster", "load") for one in changes.told(kind, 1.1)]


@pytest.mark.parametrize("change, ratio", [("+25 %", 1.25), ("+50 %", 1.5), ("2 % x 16", None), ("0.5 % x 64", None)])
def test_a_change_is_found_and_nothing_else(windows: dict[Series, np.ndarray], change: str, ratio: float | None):
    changes = compared(windows, change)
    (one,) = changes.told("slower", 1.1)
    assert one.measure.series == RUN and not changes.told("faster", 1.1)
    by, share, _ = CHANGES[change]
    mean = next(other for other in changes.every if other.measure == Measure(RUN, "mean"))
    assert mean.ratio == pytest.approx(1 + share * (2**by - 1), rel=0.15)
    if ratio:
        assert one.low < one.before * ratio < one.high
    # Its values take so much more, as often as they come.
    seconds = windows[RUN].sum() / len(windows[RUN]) * mean.before / 1e9
    assert one.lost == pytest.approx(seconds * (mean.ratio - 1), rel=0.5)


def test_the_benchmark_counts_what_was_told_and_what_was_there(windows: dict[Series, np.ndarray]):
    found = judged(windows, NOISES["calm"], "+50 %", 40, 3, 1)
    assert (found.pairs, found.found, found.false, found.gated) == (3, 3, 0, 0)
    assert judged(windows, NOISES["calm"], "none", 40, 3, 1).found == 0
    then = {series: np.concatenate([real[:10], moved(real[:10], 16, 1.0)]) for series, real in windows.items()}
    assert apart_in_time(then, 10, 2, 1).gated == 2, "all of it became four times as long"
    assert apart_in_time({one: np.tile(real[:10], (2, 1)) for one, real in then.items()}, 10, 2, 1).false == 0


def test_what_became_faster_is_not_slower(windows: dict[Series, np.ndarray]):
    random = np.random.default_rng(1)
    after, before = (make_side(windows, 40, random, CALM, changed) for changed in ({}, {RUN: "+50 %"}))
    changes = changes_of([before], after)
    assert [one.measure.series for one in changes.told("faster", 1.1)] == [RUN]
    assert not changes.told("slower", 1.1) and changes.told("faster", 1.1)[0].lost < 0


def test_what_is_saved_is_no_more_than_was_lost(windows: dict[Series, np.ndarray]):
    """Faster, and ten times as often."""
    random = np.random.default_rng(1)
    before = make_side(windows, 40, random, CALM, {RUN: "+50 %"})
    after = make_side({**windows, RUN: 10 * windows[RUN]}, 40, random, CALM)
    (one,) = changes_of([before], after).told("faster", 1.1)
    rate, mean = Blocks([before]).rate_and_mean(RUN)
    assert one.lost == pytest.approx(-rate * mean / 3, rel=0.15)


def test_a_side_with_itself_is_no_change(windows: dict[Series, np.ndarray]):
    side = make_side(windows, 20, np.random.default_rng(1), CALM)
    changes = changes_of([side], side)
    assert changes.every and all(one.step == 0 and one.half > 0 for one in changes.every)


def test_more_of_the_same_is_more_to_do_and_not_slower(windows: dict[Series, np.ndarray]):
    random = np.random.default_rng(1)
    twice = {**windows, RUN: 2 * windows[RUN]}
    changes = changes_of([make_side(windows, 40, random, CALM)], make_side(twice, 40, random, CALM))
    (one,) = changes.told("load", 1.1)
    assert one.measure.series == RUN and one.ratio == pytest.approx(2, rel=0.1)
    assert not changes.told("slower", 1.1)


def test_next_to_nothing_is_not_compared(windows: dict[Series, np.ndarray]):
    random = np.random.default_rng(1)
    rare = {**windows, RUN: windows[RUN] * 1e-4}
    changes = changes_of([make_side(rare, 40, random, CALM)], make_side(rare, 40, random, CALM))
    assert RUN not in {one.measure.series for one in changes.every}


def test_what_one_side_did_not_record_is_named(windows: dict[Series, np.ndarray]):
    side = make_side(windows, 20, np.random.default_rng(1), CALM)
    bare = replace(side, histograms={series: one for series, one in side.histograms.items() if series != RUN})
    assert changes_of([bare], side).partly == (RUN,)
    # Of which nothing was counted is not what was not recorded.
    found = changes_of([replace(bare, told={"softirq": 1.0})], side)
    assert found.partly == () and RUN in found.rare


def test_blocks_hold_every_window_once_and_no_gaps(windows: dict[Series, np.ndarray]):
    side = make_side(windows, 37, np.random.default_rng(1), CALM)
    seen = side.seen_ns.copy()
    seen[10:14] = 0
    blocks = Blocks([replace(side, seen_ns=seen)])
    assert len(blocks) == limits.BLOCKS and blocks.seconds.sum() == 33 and np.ptp(blocks.seconds) <= 1
    kept = np.delete(side.histograms[RUN].counts, range(10, 14), axis=0)
    assert blocks.histograms(RUN)[1].sum() == kept.sum()


def test_quantiles_between_the_edges_are_within_the_slot_that_is_shown():
    random = np.random.default_rng(1)
    values = (20_000 * np.exp(random.normal(0, 0.8, (3, 5000)))).astype(np.uint64)
    slots = np.stack([np.bincount(slot_of(row), minlength=SLOTS) for row in values])
    found = 2 ** log_quantiles(slots, 0.99)
    shown = np.array([Statistics.from_slots(row, 0).p99_ns for row in slots])
    assert (found <= shown * 1.001).all() and (found >= shown / GROWTH / 1.001).all()
    assert found == pytest.approx(np.quantile(values, 0.99, axis=1), rel=0.03)
    assert np.isnan(log_quantiles(slots // 1000, 0.99)).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_anything_is_compared_without_a_warning(seed: int, first: int, second: int):
    random = np.random.default_rng(seed)
    shapes = {RUN: random.poisson(3, (40, SLOTS)), Series("softirq.delay", "NET_RX"): np.eye(40, SLOTS, 200)}
    before, after = (_broken(make_side(shapes, number, random, CALM), random) for number in (first, second))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        changes = changes_of([before], after)
    assert all(math.isfinite(one.half) and one.low <= one.high for one in changes.every)


def _broken(side: Node, random: np.random.Generator) -> Node:
    """Windows that were not seen, and columns without anything to divide by."""
    seen = side.seen_ns * (random.random(len(side.seen_ns)) < 0.8)
    seen[0] = 10**9
    pairs = random.random((len(seen), 2)) * (random.random((len(seen), 1)) < 0.5)
    return replace(side, seen_ns=seen, numbers={Series("memory.stall"): pairs})
