"""rcu: calm grace periods are short; a CPU that is held in the kernel lets none end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np
import pytest
from kernel.holding import Holder, on_cpu

from tracer import histogram
from tracer.kernel import graceperiods
from tracer.kernel.sources import rcu
from tracer.kernel.sources.rcu import Source

EVERY_S = 0.1
HELD_S = 3.0


@pytest.fixture
def source() -> Iterator[Source]:
    if rcu.refusal():
        pytest.skip(rcu.refusal())
    source = Source({"rcu_every": EVERY_S})
    yield source
    source.close()


def grace(source: Source) -> np.void:
    rows, losses = source.read(time.monotonic_ns())["grace"]
    assert losses == {} and len(rows) == 1
    return rows[0]


def test_calm_waits_are_counted_and_short(source):
    time.sleep(1.5)
    row = grace(source)
    waits = int(histogram.count(row["slots"]))
    assert 3 <= waits <= 1.5 / EVERY_S
    assert 1_000 < row["sum"] / waits < 300e6
    assert histogram.count(grace(source)["slots"]) <= 1


def test_a_cpu_that_is_held_up_stalls_the_grace_period(source):
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one CPU: the wait could not be seen")
    held = max(allowed)
    times: list[int] = []

    def hold() -> None:
        times.append(time.monotonic_ns())
        holder.hold()
        times.append(time.monotonic_ns())

    seen = []
    os.sched_setaffinity(0, allowed - {held})
    try:
        with Holder(HELD_S) as holder:
            thread = on_cpu(held, hold)
            while thread.is_alive():
                time.sleep(0.1)
                seen.append(grace(source))
    finally:
        os.sched_setaffinity(0, allowed)
    time.sleep(0.5)
    seen.append(grace(source))
    began_ns, ended_ns = times
    oldest = max(seen, key=lambda row: int(row["age_ns"]))
    assert oldest["state"] == b"waiting"
    assert oldest["age_ns"] > (ended_ns - began_ns) / 3
    # It may have been waiting when the CPU was taken, or begun to one turn later.
    assert began_ns - 0.5e9 < oldest["begun_ns"] < began_ns + 1.0e9
    slots = np.sum([row["slots"] for row in seen], axis=0)
    longest_ns = int(histogram.edges_ns()[np.flatnonzero(slots)[-1]])
    assert longest_ns >= (ended_ns - int(oldest["begun_ns"])) * 0.9


def test_nothing_is_waited_for_where_the_kernel_would_panic(source, monkeypatch):
    monkeypatch.setattr(graceperiods, "number", lambda path: 1)
    time.sleep(3 * EVERY_S)
    grace(source)
    time.sleep(5 * EVERY_S)
    row = grace(source)
    assert row["state"] == b"hung_task_panic"
    assert (row["age_ns"], histogram.count(row["slots"])) == (0, 0)
