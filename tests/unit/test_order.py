"""Numbers sorted by counting come out as sorted by comparing."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.analysis.order import distinct, order


@pytest.mark.parametrize("bits", [1, 8, 16, 17, 33, 64])
def test_places_are_those_of_a_stable_sort(bits):
    values = np.random.default_rng(bits).integers(0, 2**bits - 1, 5000, np.uint64, endpoint=True)
    assert (order(values) == np.argsort(values, kind="stable")).all()
    assert (order(values, int(values.max())) == np.argsort(values, kind="stable")).all()


def test_rows_of_several_columns_are_told_apart_names_too():
    random = np.random.default_rng(1)
    numbers = random.integers(0, 9, 3000)
    large = random.integers(0, 2**64 - 1, 5, np.uint64)[random.integers(0, 5, 3000)]
    names = np.array([b"one", b"another", b"sixteen letters!", b"sixteen letters?"])[random.integers(0, 4, 3000)]
    first, which = distinct(names, numbers, large)
    rows = [*zip(names.tolist(), numbers.tolist(), large.tolist(), strict=True)]
    assert len(first) == len(set(rows)) == len({rows[place] for place in first.tolist()})
    assert all(rows[first[number]] == row for number, row in zip(which.tolist(), rows, strict=True))
    assert all(rows.index(rows[place]) == place for place in first.tolist())


def test_of_nothing_nothing_is_different():
    first, which = distinct(np.zeros(0, np.uint64), np.zeros(0, "S16"))
    assert len(first) == len(which) == 0
