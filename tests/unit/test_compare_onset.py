"""Since when a node deviates: told where its windows tell it, and not where they don't."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.compare.onset import Onset, onset_of

WINDOWS, SIGMA, SPREAD, SIZE = 30, 0.1, 0.05, 0.5


def deviations(onset: int, seed: int = 1) -> np.ndarray:
    """A node that deviates by five sigmas from a window on."""
    return np.random.default_rng(seed).normal(0, SIGMA, WINDOWS) + SIZE * (np.arange(WINDOWS) >= onset)


def since(values: np.ndarray, sigma: float = SIGMA, size: float = SIZE) -> Onset:
    return onset_of(values, np.full(len(values), sigma), SPREAD, size)


@pytest.mark.parametrize("onset", [0, 4, 9, 12, 20, 25])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_told_wherever_it_is(onset: int, seed: int):
    found = since(deviations(onset, seed))
    assert found.sure and abs(found.window - onset) <= 1
    assert (found.window == 0) == (onset == 0)


def test_bursts_before_it_are_bursts():
    values = deviations(12)
    values[[3, 8]] += 9.0
    assert since(values).sure and abs(since(values).window - 12) <= 1


def test_what_comes_and_goes_began_with_its_first_time():
    values = deviations(10)
    values[[window for window in range(10, WINDOWS) if (window - 10) % 8 >= 4]] -= SIZE
    assert since(values).sure and abs(since(values).window - 10) <= 1


def test_windows_that_are_not_known_tell_nothing():
    values = deviations(12)
    values[5:14] = np.nan
    found = since(values)
    assert not found.sure or 5 <= found.window <= 15
    assert not since(np.full(WINDOWS, np.nan)).sure


def test_less_than_its_own_noise_tells_no_window():
    random = np.random.default_rng(2)
    wrong = [
        found
        for found in (since(random.normal(0, 1, WINDOWS) + SIZE * (np.arange(WINDOWS) >= 15), 1.0) for _ in range(40))
        if found.sure and abs(found.window - 15) > 3
    ]
    assert len(wrong) <= 4


def test_a_node_that_is_a_little_slower_anyway_did_not_begin_with_the_start():
    assert abs(since(deviations(12) + 2 * SPREAD).window - 12) <= 1


@pytest.mark.parametrize("onset", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_hardly_after_the_start_is_hardly_wrong(onset: int, seed: int):
    assert abs(since(deviations(onset, seed)).window - onset) <= 1


def test_a_single_window_is_no_time():
    assert not since(np.array([np.nan])).window
