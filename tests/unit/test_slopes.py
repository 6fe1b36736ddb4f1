"""Steady falls, and what only looks like one."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.alerts.slopes import steady_fall, still_falls, theil_sen

TIMES = np.arange(60.0)


def test_a_slope_in_spite_of_outliers():
    values = 1000 - 7 * TIMES
    values[[10, 30, 31, 55]] += 5000
    assert theil_sen(TIMES, values) == pytest.approx(-7, rel=0.05)


@pytest.mark.parametrize("points", [6, 60, 600])
def test_a_steady_fall_with_noise(points):
    times = np.linspace(0, 60, points)
    values = 1000 - 7 * times + np.random.default_rng(1).normal(0, 5, points)
    assert steady_fall(times, values) == pytest.approx(7, rel=0.15)


SHAPES = {
    "flat": np.zeros(60),
    "rises": TIMES,
    "one step": np.where(TIMES < 30, 0, -500.0),
    "starts late": -np.maximum(TIMES - 40, 0),
    "has stopped": -np.minimum(TIMES, 44),
    "sawtooth": -(TIMES % 20),
    "teeth that drift": -(TIMES % 29.5) * 10 - TIMES,
    "bursts": -100.0 * (TIMES // 30),
    "noise": np.random.default_rng(2).normal(0, 10, 60),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_no_steady_fall(shape):
    assert steady_fall(TIMES, 1000 + SHAPES[shape]) == 0


def test_a_fall_that_slows_down_has_not_stopped():
    slower = 1000 - 20 * np.minimum(TIMES, 30) - 5 * np.maximum(TIMES - 30, 0)
    assert steady_fall(TIMES, slower) == 0
    assert still_falls(TIMES, slower) == pytest.approx(5, rel=0.1)
    assert still_falls(TIMES, 1000 - 7 * np.minimum(TIMES, 44)) == 0
    assert still_falls(TIMES, 1000 + SHAPES["sawtooth"]) == 0


@pytest.mark.parametrize("falls", [steady_fall, still_falls])
@pytest.mark.parametrize("points", [0, 1, 5])
def test_few_points_are_no_slope(falls, points):
    assert falls(TIMES[:points], -TIMES[:points]) == 0


@pytest.mark.parametrize("falls", [steady_fall, still_falls])
def test_times_that_stand_still_are_no_slope(falls):
    assert falls(np.ones(10), -np.arange(10.0)) == 0
