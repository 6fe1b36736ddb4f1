"""How far one more recording may be from those before: exceeded as rarely as is said, however recordings scatter."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.difference.noise import apart
from tracer.difference.times import between

_BLOCKS, _MEASURES = 10, 12


def recordings(random: np.random.Generator, number: int, scatter: float) -> list[np.ndarray]:
    """Blocks of noise; each recording is off by as much more, another one in each measure."""
    return [random.normal(size=(_BLOCKS, _MEASURES)) + random.normal(0, scatter, _MEASURES) for _ in range(number)]


@pytest.mark.parametrize("before", [2, 4])
@pytest.mark.parametrize("scatter", [0.0, 1.0, 3.0])
def test_one_more_of_the_same_is_rarely_further_off(before: int, scatter: float):
    random, missed = np.random.default_rng(1), 0
    for _ in range(30):
        *befores, after = recordings(random, before + 1, scatter)
        found = apart(befores, after, (60.0, 60.0))
        missed += bool((np.abs(found.after - found.before) > found.half).any())
    # 2 % are meant: more than three of 30 would be seen in one of three hundred runs.
    assert missed <= 3


def test_one_recording_is_in_doubt_of_what_another_time_does():
    random, told, doubted = np.random.default_rng(2), 0, 0
    for _ in range(30):
        before, after = (0.3 * recordings(random, 1, 1.0)[0] for _ in range(2))
        found = apart([before], after, (60.0, 60.0))
        step = np.abs(found.after - found.before)
        told, doubted = told + bool((step > found.half).any()), doubted + bool((step > found.doubt).any())
    assert told > 15 and doubted <= 3


def test_surely_four_times_as_long_is_no_other_time_even_with_one_before():
    random = np.random.default_rng(5)
    before, after = recordings(random, 2, 0.0)
    found = apart([before], after, (60.0, 60.0))
    assert (found.doubt <= found.half + 2).all() and (found.doubt > found.half).all()


@pytest.mark.parametrize("befores", [2, 3, 5])
def test_what_after_does_in_its_middle_is_not_its_own_noise_and_one_block_is_no_change(befores: int):
    """30 % of it are four times as long, which makes blocks of it scatter widely; or one block is, by far more."""
    random = np.random.default_rng(6)
    *before, after = (0.05 * one for one in recordings(random, befores + 1, 0.0))
    for blocks, rise, told in ((3, 2.0, True), (1, 6.0, False)):
        slow = after.copy()
        slow[4 : 4 + blocks, 0] += rise
        found = apart(before, slow, (60.0, 60.0))
        step = np.abs(found.after - found.before)
        assert (step > found.half).tolist() == [told] + [False] * (_MEASURES - 1)


def test_more_recordings_of_before_tell_smaller_changes():
    random = np.random.default_rng(3)
    halves = [
        np.mean(
            [
                apart(recordings(random, number, 0.3), recordings(random, 1, 0.3)[0], (60.0, 60.0)).doubt
                for _ in range(5)
            ]
        )
        for number in (1, 2, 4, 8)
    ]
    assert halves[0] > halves[2] > halves[3] and halves[1] > halves[3]


def test_measures_that_never_move_or_are_not_known_in_all_recordings_are_no_trouble():
    rest = np.zeros((20, 3))
    rest[:, 0] = np.random.default_rng(4).normal(size=20)
    middles = np.array([[0.0, 0.0, np.nan], [1.0, 0.0, 0.0]])
    with np.errstate(all="raise"):
        found = between(middles, np.ones(3), rest)
        assert np.isfinite(found).all() and (found > 0).all()
        assert not between(middles, np.ones(3), np.zeros((20, 3))).any()


@pytest.mark.parametrize("befores", [1, 3])
def test_recordings_of_seconds_tell_less_of_other_times_than_those_of_a_minute(befores: int):
    """What is half as long again as they can tell is in doubt after 16 s, and no doubt after a minute."""
    *before, after = (0.1 * one for one in recordings(np.random.default_rng(8), befores + 1, 0.3))
    minute, longer, short = (apart(before, after, (seconds, seconds)) for seconds in (60.0, 600.0, 16.0))
    assert (minute.doubt == longer.doubt).all() and (short.half == minute.half).all()
    assert (short.doubt > 1.4 * minute.doubt).all()
