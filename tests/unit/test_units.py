"""Formats people read: three digits, a unit, never 0 for what was not measured, never 1e+03."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer import units

THIN = "\u202f"
NAN = float("nan")


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (0.001, "<0.01 ns"),
        (845, "845 ns"),
        (999.6, "1 µs"),
        (1_200_000, "1.2 ms"),
        (948_999_999, "949 ms"),
        (999_600_000, "1 s"),
        (128e9, "128 s"),
        (125.4e9, "125 s"),
        (200e9, "3 min 20 s"),
        (3599.7e9, "1 h 00 min"),
        (7_380e9, "2 h 03 min"),
        (90 * 3600e9, "3 d 18 h"),
        (-1500, "-1.5 µs"),
        (NAN, "–"),
        (math.inf, "> 128 s"),
    ],
)
def test_duration(ns, text):
    assert units.duration(ns) == text


@given(st.floats(min_value=0, max_value=1e17))
def test_durations_have_no_exponent_and_at_most_three_digits(ns):
    text = units.duration(ns)
    assert "e" not in text
    if text.count(" ") == 1:
        assert len(text.split()[0].replace(".", "").lstrip("0<")) <= 3


def test_maxima_are_at_most():
    assert units.at_most(8_390_000) == "≤ 8.39 ms"
    assert units.at_most(NAN) == "–"
    assert units.at_most(math.inf) == "> 128 s"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.00001, "<0.01 %"),
        (0.0004, "0.04 %"),
        (0.05, "5 %"),
        (0.93, "93 %"),
        (0.9999, "99.9 %"),
        (1, "100 %"),
    ],
)
def test_percent_is_100_only_for_all_and_0_only_for_none(share, text):
    assert units.percent(share) == text


def test_counts_rates_sizes():
    assert units.count(12345) == f"12{THIN}345"
    assert units.rate(949) == "949/s"
    assert units.rate(999.9) == "1 k/s"
    assert units.rate(0.25) == "0.25/s"
    assert units.throughput(1.25e9) == "1.25 GB/s"
    assert units.memory(34_700_000) == "33.1 MiB"
    assert units.link_speed(100_000) == "100 Gb/s"
    assert units.link_speed(0) == units.link_speed(-1) == "–"
    assert {f(NAN) for f in (units.count, units.rate, units.throughput, units.memory, units.percent)} == {"–"}


def test_moments_are_utc_and_say_so():
    assert units.moment(1_764_468_665e9) == "2025-11-30 02:11:05 UTC"
    assert units.moment(1_764_468_665e9, date=False) == "02:11:05 UTC"
    assert units.moment(1e30) == units.moment(NAN) == "–"


def test_columns_align_with_wide_and_combining_characters():
    assert units.display_width("训练") == 4
    assert units.display_width("e\u0301") == 1
    assert units.pad("训练", 6) == "训练  "
    assert units.pad("≤ 1 s", 7, right=True) == "  ≤ 1 s"
    assert units.clip("训练训练", 5) == "训练…"
    assert units.clip("abc", 0) == ""


@given(st.text(max_size=40), st.integers(min_value=0, max_value=30))
def test_clipped_text_fits(text, width):
    assert units.display_width(units.clip(text, width)) <= width


def test_counted_things_are_singular_or_plural():
    assert [units.many(number, "interval") for number in (0, 1, 2)] == ["0 intervals", "1 interval", "2 intervals"]


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (1, 1, "="),
        (10_000, 10_001, "="),
        (100, 101, "+1 %"),
        (2, 3, "+50 %"),
        (3, 2, "−33 %"),
        (1, 3, "×3"),
        (4, 1, "÷4"),
        (1, 0.0362, "÷27.6"),
        (0, 1, "new"),
        (1, 0, "gone"),
        (1, 999.4, "×999"),
        (1, 1e6, "×>999"),
        (1e6, 1, "÷>999"),
        (1, math.inf, "×>999"),
        (math.inf, 1, "÷>999"),
        (NAN, 1, "–"),
        (1, NAN, "–"),
    ],
)
def test_change(before, now, text):
    assert units.change(before, now) == text


@pytest.mark.parametrize(("ratio", "text"), [(1.1, "×1.1"), (0.8, "×0.8"), (0.5, "÷2"), (0, "÷>999"), (NAN, "–")])
def test_times(ratio, text):
    assert units.times(ratio) == text


def test_a_bound_is_told_in_the_manner_of_what_it_bounds():
    assert [units.relative(ratio, beside=1.99) for ratio in (0.4, 2.27)] == ["−60 %", "+127 %"]
    assert [units.relative(ratio, beside=0.04) for ratio in (0.03, 0.8)] == ["÷33.3", "÷1.25"]
