"""The ledger: softirqs that hold a rank's CPU while it waits are told as such, with their time, and as no neighbour."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import pytest
from kernel.cpu_group import CpuGroup, cpu_group  # noqa: F401  (a fixture)
from kernel.holding import Holder, on_cpu
from kernel.test_ledger import CPU, Books, taken_by
from kernel.traced import Traced
from kernel.workload import SPIN, Task

PACKETS = 10
#: ``hold_softirq`` sleeps so long after each packet.
PAUSE_NS = 50_000_000


def test_softirqs_that_take_the_cpu_are_no_neighbour(
    attach: Callable[..., Traced],
    cpu_group: Callable[[str], CpuGroup],  # noqa: F811
) -> None:
    took: list[int] = []
    group = cpu_group("rank")

    def send() -> None:
        for _ in range(PACKETS):
            began = time.monotonic_ns()
            slow.hold_softirq()
            took.append(time.monotonic_ns() - began)

    with Holder(0.02) as slow, Task(SPIN, 1.5, cpu=CPU) as rank:
        # Whatever else runs here: it has nearly all of its CPU but for the packets.
        group.weigh(50)
        group.add(rank.pid)
        books = Books(attach("ledger"), rank.pid)
        rank.go()
        on_cpu(CPU, send, fifo=10).join()
        rank.result()
        books.close()
    account = books.account(rank.pid)
    truth_ns = PACKETS * (median(took) - PAUSE_NS)
    assert taken_by(account, "interrupts") == pytest.approx(truth_ns, rel=0.1)
    assert account.cause == "interrupts", account.taken
    # Nearly all of it by its vector: the receipt of packets, in stays of the rank or of who sends.
    assert account.taken[0].what == "softirq NET_RX", account.taken
    assert account.taken[0].ns == pytest.approx(truth_ns, rel=0.1)
