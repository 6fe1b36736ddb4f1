"""What is slower for a part of a side: found where it is, as rarely by chance as is said, whatever the blocks hold."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sim.pairs import Wobble, make_side, real_windows
from sim.recordings import DEMO

from tracer.analysis.summary import Summary
from tracer.compare.metrics import Series
from tracer.difference.measures import Blocks
from tracer.difference.scan import scan
from tracer.difference.side import Side
from tracer.difference.spans import slow_spans
from tracer.difference.stretch import slower_stretches
from tracer.units import SECOND

RUN = Series("softirq.run", "NET_RX")


@pytest.fixture(scope="module")
def windows() -> dict[Series, np.ndarray]:
    return real_windows(DEMO)


@pytest.mark.parametrize("start, end", [(20, 40), (30, 40), (0, 10), (17, 23)])
def test_a_stretch_is_found_where_it_is(start: int, end: int):
    random = np.random.default_rng(start)
    before, after = (random.normal(size=(40, 6)) for _ in range(2))
    after[start:end, 2] += 4
    found = scan([before], after)
    assert found is not None and found.above[2]
    assert abs(found.start - start) <= 1 and abs(found.end - end) <= 1


def test_a_stretch_that_one_before_shows_is_shown_by_more():
    """They are longer together, and each is off by something of its own; what goes on lasts no longer for that."""
    random = np.random.default_rng(7)
    *befores, after = (random.normal(size=(30, 6)) + random.normal(0, 0.5, 6) for _ in range(6))
    after[12:19, 2] += 5
    for number in range(1, 6):
        found = scan(befores[:number], after)
        assert found is not None and found.above[2] and abs(found.start - 12) <= 1, number


def test_chance_makes_no_more_stretches_than_it_is_said_to():
    random = np.random.default_rng(1)
    found = [scan([random.normal(size=(20, 5))], random.normal(size=(20, 5))) for _ in range(20)]
    # 1 % is meant: more than two of twenty would be seen in one of a thousand runs.
    assert sum(one is not None for one in found) <= 2


def test_what_comes_in_stretches_before_as_well_is_nothing_new():
    """One of five blocks has it on both sides, five in a row each time."""
    random = np.random.default_rng(2)
    told = 0
    for _ in range(20):
        sides = random.normal(0, 0.1, (2, 40, 3))
        for side in sides:
            for place in random.integers(0, 36, 2):
                side[place : place + 5, 0] += 3
        told += scan(sides[:1], sides[1]) is not None
    assert told <= 2


def test_lower_is_no_stretch():
    random = np.random.default_rng(3)
    before, after = (random.normal(size=(40, 4)) for _ in range(2))
    after[20:] -= 4
    assert scan([before], after) is None


def test_few_blocks_unknown_ones_and_equal_ones_say_nothing():
    random = np.random.default_rng(4)
    blocks = random.normal(size=(40, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scan([blocks[:9]], blocks + 9) is None
        assert scan([np.zeros((40, 2))], np.zeros((40, 2))) is None
        assert scan([np.full((40, 2), np.nan)], blocks[:, :2]) is None
        after = np.where(random.random(blocks.shape) < 0.3, np.nan, blocks + 5 * (np.arange(40) >= 20)[:, None])
        found = scan([blocks], after)
    assert found is not None and abs(found.start - 20) <= 4


@pytest.mark.parametrize("slow", [[(5, 12), (15, 23)], [(10, 17), (21, 28)], [(4, 10), (15, 21), (25, 31)]])
def test_slow_spans_with_gaps_between_are_told_apart(slow: list[tuple[int, int]]):
    random = np.random.default_rng(11)
    before, after = random.normal(size=(60, 6)), random.normal(size=(40, 6))
    for start, end in slow:
        after[start:end, 2] += 6
    found = scan([before], after)
    assert found is not None and len(found.spans) == len(slow)
    for (start, end), (first, last) in zip(slow, found.spans, strict=True):
        assert abs(first - start) <= 1 and abs(last - end) <= 1


def test_chance_makes_hardly_any_gap():
    random = np.random.default_rng(12)
    gaps = 0
    for _ in range(100):
        rise = random.normal(size=40) + np.where((np.arange(40) >= 10) & (np.arange(40) < 30), 2.5, 0)
        gaps += slow_spans(rise, 10, 30, 1.0) != ((10, 30),)
    # Of 3,000 drawn with other seeds 2 had one.
    assert gaps <= 2


def test_spans_too_short_together_are_one_stretch():
    rise = np.zeros(12)
    rise[[2, 3, 8, 9]] = 6.0
    assert slow_spans(rise, 2, 10, 0.5) == ((2, 10),)
    rise[[4, 10]] = 6.0
    assert slow_spans(rise, 2, 11, 0.5) == ((2, 5), (8, 11))


def test_it_says_when_also_beside_gaps_and_longer_windows(windows: dict[Series, np.ndarray]):
    random = np.random.default_rng(5)
    before, after = (make_side(windows, 40, random, Wobble(), changed) for changed in ({}, {RUN: "last half"}))
    seen = after.seen_ns.copy()
    seen[5:8] = 0  # a pause
    later = replace(after, seen_ns=seen, first=1000, start_ns=1_000_400_000_000, end_ns=1_039_900_000_000)
    (found,) = slower_stretches([before], later)
    assert [one.measure.series for one in found.slower] == [RUN]
    assert found.start == pytest.approx(19.6, abs=3) and found.end == pytest.approx(39.5, abs=3)
    blocks = Blocks([later], 12)
    assert blocks.windows(0, 1)[0] == 0 and blocks.windows(11, 12)[1] == 40


def test_the_clock_of_a_span_counts_pauses_before_it_alone(windows: dict[Series, np.ndarray]):
    node = make_side(windows, 40, np.random.default_rng(5), Wobble())
    # An hour without anything between the 20th and the 21st second, of which the later begins a little late.
    side = Side("one", node, Summary(), 0, 0, ((20 * SECOND + SECOND // 10, 3600 * SECOND),))
    assert side.clock_ns((10.0, 20.0)) == (10 * SECOND, 20 * SECOND)
    assert side.clock_ns((20.0, 30.0)) == (3620 * SECOND, 3630 * SECOND)
    assert side.clock_ns((10.0, 30.0)) == (10 * SECOND, 3630 * SECOND)


def test_two_stretches_are_both_found_and_a_third_is_not(windows: dict[Series, np.ndarray]):
    random = np.random.default_rng(6)
    before, after = (make_side(windows, 120, random, Wobble(), changed) for changed in ({}, {RUN: "last 4th"}))
    (late,) = slower_stretches([before], after)
    # The same at the beginning: the order of time turned round.
    early = after.histograms[RUN].counts.copy()
    early[:20] = early[-20:]
    both = replace(after, histograms={**after.histograms, RUN: replace(after.histograms[RUN], counts=early)})
    found = sorted(slower_stretches([before], both), key=lambda one: one.start)
    assert [[one.measure.series for one in part.slower] for part in found] == [[RUN], [RUN]]
    assert found[0].start <= 4 and 14 <= found[0].end <= 26
    assert found[1].start == pytest.approx(late.start, abs=6) and found[1].end > 110
