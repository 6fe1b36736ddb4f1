"""Names from a node can't command a terminal or reorder a line."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.escape import printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("python3", "python3"),
        ("训练 µ", "训练 µ"),
        (r"dev-disk\x2d1.device", r"dev-disk\x2d1.device"),
        ("\x1b[2Jowned", r"\x1b[2Jowned"),
        ("a\nb\r\tc", r"a\x0ab\x0d\x09c"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("a\u200bb", r"a\u200bb"),
        ("\x9b31m", r"\x9b31m"),
        ("line\u2028two", r"line\u2028two"),
        (b"\xff\xfeok", r"\xff\xfeok"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_shown(name, shown):
    assert printable(name) == shown


@given(st.one_of(st.text(), st.binary()))
def test_nothing_dangerous_is_left_and_twice_is_once(name):
    shown = printable(name)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert printable(shown) == shown


def test_marks_do_not_pile_up():
    assert printable("a" + "\u0301" * 30).count("\u0301") == 4
