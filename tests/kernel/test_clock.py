"""A clock that is set while recording: every interval can still be told in UTC."""

from __future__ import annotations

import time

import pytest
from kernel.traced import Traced

from tracer.kernel.clock import offset_ns

STEP_NS = 20_000_000


def set_forward(ns: int) -> None:
    try:
        time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + ns)
    except PermissionError:
        pytest.skip("not allowed to set the clock (CAP_SYS_TIME)")


def offsets(traced: Traced) -> list[int]:
    told: list[int] = traced.collect()["agent.clock"].rows["offset_ns"].tolist()
    return told


def test_an_offset_that_moved_is_told_once_each_time(attach):
    traced = attach("agent")
    before, _ = offset_ns()
    assert offsets(traced) == []
    set_forward(STEP_NS)
    try:
        (stepped,) = offsets(traced)
        assert stepped - before == pytest.approx(STEP_NS, abs=2_000_000)
        assert offsets(traced) == []
    finally:
        set_forward(-STEP_NS)
    (back,) = offsets(traced)
    assert back == pytest.approx(before, abs=2_000_000)
