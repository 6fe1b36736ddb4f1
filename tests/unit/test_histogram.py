"""Buckets: no value is misplaced anywhere in the range, and what the kernel's table leads to is the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer import histogram as h
from tracer.layouts import constants, layout

INDEXES = range(h.FIRST_BUCKET, h.LAST_BUCKET + 1)
LAST_EDGE = h.edge_ns(h.LAST_BUCKET)

values = st.one_of(
    st.integers(0, 2**64 - 1),
    # Near the edges is where a value could be misplaced.
    st.builds(lambda bucket, off: max(0, h.edge_ns(bucket) + off), st.sampled_from(INDEXES), st.integers(-2, 2)),
    st.builds(lambda exponent, off: max(0, 2**exponent + off), st.integers(0, 63), st.integers(-2, 2)),
)


def above(value_ns: int, bucket: int) -> bool:
    """Whether ``value_ns > 1e9 * 2**(bucket/8)``, in exact arithmetic: both sides to the eighth power."""
    return value_ns**8 > 10**72 * Fraction(2) ** bucket


def truly_in(value_ns: int, slot: int) -> bool:
    """Whether a slot is the one that the definition gives a value to."""
    if slot == 0:
        return value_ns == 0
    if slot == h.SLOTS - 1:
        return above(value_ns, h.LAST_BUCKET)
    bucket = h.FIRST_BUCKET + slot - 1
    return above(value_ns, bucket - 1) and not above(value_ns, bucket)


@given(values)
def test_no_value_is_misplaced(value_ns: int):
    assert truly_in(value_ns, int(h.slot_of(value_ns)))


def test_every_edge_and_its_neighbours_are_in_place():
    around = sorted({max(0, h.edge_ns(bucket) + off) for bucket in INDEXES for off in (-1, 0, 1)})
    for value_ns, slot in zip(around, h.slot_of(around), strict=True):
        assert truly_in(value_ns, int(slot)), value_ns


def test_small_values_are_all_in_place():
    for value_ns, slot in enumerate(h.slot_of(np.arange(100_000))):
        assert truly_in(value_ns, int(slot)), value_ns


def test_edges_are_the_whole_nanoseconds_below_the_real_ones():
    for bucket in INDEXES:
        edge = h.edge_ns(bucket)
        assert not above(edge, bucket)
        assert above(edge + 1, bucket)
    assert [h.edge_ns(0), h.edge_ns(8), h.edge_ns(-8)] == [10**9, 2 * 10**9, 5 * 10**8]
    assert h.edge_ns(56) == 128 * 10**9


def test_edges_rise_and_no_slot_beyond_the_first_few_is_empty():
    edges = h.edges_ns().astype(object)
    assert len(edges) == h.SLOTS == h.LAST_BUCKET - h.FIRST_BUCKET + 3
    assert all(lower <= upper for lower, upper in zip(edges, edges[1:], strict=False))
    # From 12 ns on every bucket holds at least one whole nanosecond.
    first = int(h.slot_of(12))
    assert all(lower < upper for lower, upper in zip(edges[first:], edges[first + 1 :], strict=False))


def test_the_slots_partition_the_range():
    edges = [int(edge) for edge in h.edges_ns()]
    assert edges[0] == 0
    assert edges[-1] == 2**64 - 1
    # A slot holds what is above the edge before it, up to its own.
    for slot in range(1, h.SLOTS):
        if edges[slot] > edges[slot - 1]:
            assert h.slot_of([edges[slot - 1] + 1, edges[slot]]).tolist() == [slot, slot]


def kernel_slot(value: int) -> int:
    """``hist_slot`` of bpf/foreshock.bpf.h, step by step."""
    table = np.frombuffer(h.kernel_table(), dtype=layout("hist", "hist_edges"))[0]
    if not value:
        return 0
    bit = value.bit_length() - 1
    if bit > 40:
        return h.SLOTS - 1
    slot = int(table["guess"][(bit << 3 | value << 3 >> bit & 7) & constants("hist")["HIST_GUESSES"] - 1])
    for _ in range(2):
        if slot < h.SLOTS - 1 and value > int(table["edge_ns"][slot]):
            slot += 1
    return slot


@given(values)
def test_the_kernels_steps_lead_to_the_same_slot(value_ns: int):
    assert kernel_slot(value_ns) == int(h.slot_of(value_ns))


def test_guesses_are_at_most_two_too_low():
    table = np.frombuffer(h.kernel_table(), dtype=layout("hist", "hist_edges"))[0]
    for exponent in range(41):
        for fraction in range(8):
            first, last = (8 + fraction << exponent) >> 3, ((9 + fraction << exponent) - 1 >> 3)
            guess = int(table["guess"][exponent << 3 | fraction])
            assert guess <= int(h.slot_of(first))
            assert int(h.slot_of(max(first, last))) <= guess + 2


@given(st.lists(values, min_size=1, max_size=50))
def test_quantiles_and_the_maximum_bound_the_values(recorded: list[int]):
    slots = np.bincount(h.slot_of(recorded), minlength=h.SLOTS).astype("u4")
    assert h.count(slots) == len(recorded)
    for fraction in (0.01, 0.5, 0.9, 0.99, 1.0):
        exact = sorted(recorded)[max(1, int(np.ceil(fraction * len(recorded)))) - 1]
        shown = h.quantile_ns(slots, fraction)
        if exact > LAST_EDGE:
            assert shown == float("inf")
        else:
            # Never understated, overstated by one bucket at most (and by whole nanoseconds where those are coarser).
            assert exact <= shown <= exact * 2 ** (1 / 8) + 1
    worst = max(recorded)
    assert h.max_ns(slots) >= worst or worst > LAST_EDGE


@given(st.lists(values, max_size=50), values)
def test_counts_above_a_threshold_are_of_slots_wholly_above(recorded: list[int], threshold: int):
    slots = np.bincount(h.slot_of(recorded), minlength=h.SLOTS)
    counted = h.count_above(slots, threshold)
    limit = int(h.edges_ns()[int(h.slot_of(threshold))])
    assert counted == sum(value > limit for value in recorded)
    assert limit >= threshold


def test_an_empty_histogram_has_no_quantile():
    empty = np.zeros(h.SLOTS, dtype="u4")
    assert np.isnan(h.quantile_ns(empty, 0.5))
    assert np.isnan(h.max_ns(empty))
    assert h.count(empty) == 0


@pytest.mark.parametrize("step", range(1, 4))
def test_coarser_schemas_merge_whole_buckets(step: int):
    # Bucket i of schema 3 lies in bucket (i + 1) >> 1 of schema 2, and so on: the upper edges coincide.
    for bucket in range(h.FIRST_BUCKET, h.LAST_BUCKET):
        coarse = bucket
        for _ in range(step):
            coarse = coarse + 1 >> 1
        assert coarse - 1 < Fraction(bucket, 2**step) <= coarse


def test_which_of_many_histograms_reach_a_value_is_what_their_maxima_say():
    values = np.random.default_rng(1).integers(1, 2**40, (200, 3))
    slots = np.zeros((201, h.SLOTS), np.uint32)
    for row, some in zip(slots, values, strict=False):
        row += np.bincount(h.slot_of(some), minlength=h.SLOTS).astype(np.uint32)
    for threshold in (1, 10**9, 3 * 10**10, 2**62):
        found = [bool(h.max_ns(row) >= threshold) for row in slots]
        assert h.reaches(slots, threshold).tolist() == found
    assert h.reaches(slots, 10**9).any() and not h.reaches(slots, 10**9).all()
