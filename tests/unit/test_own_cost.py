"""Our programs' costs: run times while the kernel accounts for them, skipped runs now and then and on request."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tracer.kernel.loader import syscalls
from tracer.kernel.readers import own_cost
from tracer.probes.agent import PROBE

SECOND = 10**9


class Kernel:
    """The accounting of two programs."""

    def __init__(self) -> None:
        self.counts = {"on_a": (0, 0, 0), "on_b": (0, 0, 0)}
        self.asked = 0

    def costs(self) -> dict[str, tuple[int, int, int]]:
        self.asked += 1
        return dict(self.counts)


@pytest.fixture
def kernel():
    return Kernel()


def session(kernel: Kernel, accounting: Callable[[], int], *, counts_misses: bool = True) -> Any:
    return SimpleNamespace(costs=kernel.costs, counts_misses=lambda: counts_misses, map_bytes=0, accounting=accounting)


def refuse() -> int:
    raise OSError


def misses(reader: own_cost.Reader, now_ns: int) -> tuple[list[int], int]:
    rows, losses = reader.read(now_ns)["cost"]
    assert rows["program"].tolist() == [b"on_a", b"on_b", b"agent"]
    assert not rows["sampled_ns"].any() and rows["resident_bytes"][2] > 0
    return rows["recursion_misses"].tolist(), losses["recursion_misses"]


def test_no_skipped_run_is_lost_between_two_questions(kernel):
    reader = own_cost.Reader(session(kernel, refuse), PROBE)
    reader.read(0)
    asked = kernel.asked
    kernel.counts["on_b"] = (0, 0, 3)
    told = [misses(reader, second * SECOND) for second in range(1, 11)]
    assert told == [([0, 0, 0], 0)] * 9 + [([0, 3, 0], 3)]
    assert kernel.asked == asked + 1
    kernel.counts["on_a"] = (0, 0, 2)
    reader.complete()
    assert misses(reader, 11 * SECOND) == ([2, 0, 0], 2)
    reader.close()


def test_run_times_are_told_for_the_time_of_the_accounting_whenever_it_is_read(kernel, monkeypatch):
    now_ns = 5 * SECOND
    monkeypatch.setattr(own_cost.time, "monotonic_ns", lambda: now_ns)
    reader = own_cost.Reader(session(kernel, lambda: os.open(os.devnull, os.O_RDONLY)), PROBE)
    reader.read(0)
    kernel.counts["on_a"] = (500, 7, 0)
    # The interval ended after a second; others were read first.
    now_ns += 3 * SECOND
    rows = reader.read(SECOND)["cost"][0]
    assert rows[["run_count", "run_ns", "sampled_ns"]][0].tolist() == (7, 500, 3 * SECOND)
    reader.close()


def test_a_kernel_that_does_not_count_skipped_runs_is_not_said_to_have_none(kernel):
    reader = own_cost.Reader(session(kernel, refuse, counts_misses=False), PROBE)
    assert reader.read(0)["cost"][1] == {}
    reader.close()


@pytest.mark.parametrize(("known", "counted"), [(208, False), (216, True), (232, True)])
def test_the_kernel_says_how_much_of_the_info_it_knows(monkeypatch, known, counted):
    def answer(command: int, attr: bytearray) -> int:
        struct.pack_into("<I", attr, 4, known)
        return 0

    monkeypatch.setattr(syscalls, "_bpf", answer)
    assert syscalls.counts_misses(3) is counted
