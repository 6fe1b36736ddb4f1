"""Kinds of slowness, told from all levels together: what hides in the noise of a loaded node, and what must not."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.compare import limits
from tracer.compare.deviation import of_histograms
from tracer.compare.judged import Judged
from tracer.compare.patterns import PATTERNS, Pattern, amounts
from tracer.compare.robust import medians
from tracer.compare.shapes import blurred, centroids
from tracer.histogram import SLOTS

SECOND = 10**9
NODES, WINDOWS, ONSET, ILL = 48, 30, 12, 7


def loaded(seed: int, ratio: float = 1.0, share: float = 1.0) -> np.ndarray:
    """Short waits and long ones, of which every node has other shares in every window: load.

    From ``ONSET`` on ``share`` of the values of one node are ``ratio`` times as long.
    """
    random = np.random.default_rng(seed)
    places = np.arange(SLOTS)
    short, long = (np.exp(-((places - at) ** 2) / (2 * 10**2)) for at in (100, 190))
    load = np.exp(random.normal(-2, 0.8, (NODES, WINDOWS, 1)))
    expected = 4000 * (short / short.sum() + load * long / long.sum())
    by = round(8 * np.log2(ratio))
    later = np.roll(expected[ILL, ONSET:], by, axis=-1)
    expected[ILL, ONSET:] = (1 - share) * expected[ILL, ONSET:] + share * later
    return np.asarray(random.poisson(expected).astype(np.uint64))


def shown(slots: np.ndarray) -> list[np.ndarray]:
    functions = blurred(slots)
    return [amount for _, amount in amounts(functions, medians(functions), slots.sum(axis=-1, dtype=float))]


def test_load_hides_a_slower_node_from_its_mean_and_not_from_its_shape():
    slots = loaded(1, 2**0.25)
    middles, errors = centroids(slots)
    assert not Judged(middles - medians(middles), limits.BULK, limits.BULK_FLOOR, errors).found()
    (one,) = of_histograms(slots, SECOND).deviations
    assert (one.node, one.form) == (ILL, "bulk") and one.ratio == pytest.approx(2**0.25, abs=0.08)
    assert abs(one.begin - ONSET) <= 1 and not one.lasting


@pytest.mark.parametrize("seed", range(4))
def test_load_alone_is_no_slowness(seed: int):
    assert not of_histograms(loaded(seed), SECOND).deviations


@pytest.mark.parametrize("place, pattern", list(enumerate(PATTERNS)))
def test_an_amount_is_one_where_the_pattern_is_there_once(place: int, pattern: Pattern):
    amount = shown(loaded(2, 2.0**pattern.octaves, pattern.share))[place]
    assert np.median(amount[ILL, ONSET:]) == pytest.approx(1, abs=0.4)
    assert abs(np.median(amount[ILL, :ONSET])) < 0.4


def test_a_pattern_makes_the_mean_grow_by_what_it_says():
    assert PATTERNS[0].ratio(1.0) == pytest.approx(2**0.25)
    assert all(one.ratio(1.0) == pytest.approx(1.3) and not one.whole for one in PATTERNS[1:])
    assert all(one.ratio(5 * one.floor) == pytest.approx(limits.EFFECT) for one in PATTERNS)


def test_windows_without_values_have_no_amount():
    slots = loaded(3)
    slots[:, 4] = 0
    slots[5, 6:9] = 0
    for amount in shown(slots):
        assert np.isnan(amount[:, 4]).all() and np.isnan(amount[5, 6:9]).all()
        assert np.isnan(amount).sum() == NODES + 3
