"""Rows of samples out of what programs counted: what is added up, and what is not."""

from __future__ import annotations

import numpy as np

from tracer.kernel.readers.samples import merged
from tracer.layouts import layout


def test_stacks_of_one_name_are_added_up_and_those_of_two_programs_are_not():
    """All four ended up in one placeholder; the two of one program differ by addresses only."""
    keys = np.zeros(4, layout("oncpu", "oncpu_key"))
    keys["tgid"] = keys["tid"] = 77
    keys["comm"], keys["user_stack"] = [b"first", b"second", b"first", b"third"], [1, 1, 2, 3]
    values = np.zeros(4, layout("oncpu", "oncpu_count"))
    values["weight"] = [100, 195, 7, 1]
    rows = merged(keys, values, np.full(4, 5, "u8"))
    assert dict(rows[["comm", "weight"]].tolist()) == {b"first": 107, b"second": 195, b"third": 1}
    assert len(rows) == 3 and set(rows["stack"]) == {5}
