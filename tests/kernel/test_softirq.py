"""softirq: against /proc/softirqs; packets of a known number; softirqs held up for a known time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np
import pytest
from kernel.driven import Driven
from kernel.traced import counted
from kernel.workload import UNSEEN, Proc, SoftirqsHeld, Task

from tracer import histogram
from tracer.layouts import layout

VECTORS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
NET_RX = 3
MS = 1_000_000
UNUSED = 5  # IRQ_POLL: nothing here raises it
DELAY, RUN = 1, 2

SEND = """
import socket
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect(sink.getsockname())
for _ in range(int(sys.argv[1])):
    out.send(b"x")
"""


def of(rows: np.ndarray, cpu: int, vector: int) -> np.ndarray:
    return rows[(rows["cpu"] == cpu) & (rows["vector"] == vector)]


def test_counts_runs_as_proc_softirqs_does(attach):
    traced = attach("softirq")
    proc = Proc("/proc/softirqs", traced)
    time.sleep(1)
    rows = proc.end()["softirq.run"].rows
    for vector, name in enumerate(VECTORS):
        for cpu in proc.most[name]:
            count = counted(of(rows, cpu, vector))
            assert proc.agrees(name, cpu, count), proc.told(name, cpu, count)


def test_every_packet_over_loopback_is_a_net_rx_run(attach, namespaces):
    cpu = min(os.sched_getaffinity(0))
    traced = attach("softirq")
    with Task(SEND, 1000, cpu=cpu, namespace=namespaces()) as task:
        traced.collect()
        task.go()
        task.result()
        windows = traced.collect()
    runs = counted(of(windows["softirq.run"].rows, cpu, NET_RX))
    delays = counted(of(windows["softirq.delay"].rows, cpu, NET_RX))
    assert runs >= 1000 * (1 - UNSEEN)
    # Sent by a task, it is received as soon as that switches bottom halves on again.
    assert runs * (1 - UNSEEN) - 1 <= delays + windows["softirq.delay"].losses["unraised"]
    assert windows["softirq.delay"].losses["negative"] == 0


def test_softirqs_held_up_are_late_and_the_holder_is_named(attach):
    cpu = max(os.sched_getaffinity(0))
    traced = attach("softirq", SOFTIRQ_THRESHOLD_NS=4_000_000)
    with SoftirqsHeld(cpu) as holder:
        traced.collect()
        time.sleep(0.5)
    windows = traced.collect()
    rows = windows["softirq.delay"].rows
    slots = rows["slots"][rows["cpu"] == cpu].sum(axis=0)
    # The holder lets go every 20 ms or so; whatever was raised in the meantime came that late.
    assert histogram.max_ns(slots) > 8_000_000
    assert histogram.max_ns(slots) < 500_000_000
    worst = windows["softirq.worst"].rows
    late = worst[(worst["kind"] == DELAY) & (worst["cpu"] == cpu)]
    assert len(late) and late["duration_ns"].min() >= 4_000_000
    longest = late[late["duration_ns"].argmax()]
    if longest["pid"] != holder.tid:
        pytest.fail(f"{longest['comm']} held the softirq up, not {holder.tid}: {longest}")
    assert longest["holder_ns"] > 0.5 * longest["duration_ns"]
    assert longest["holder_prio"] == 99 - holder.PRIORITY


@pytest.fixture
def driven() -> Iterator[Driven]:
    driven = Driven("softirq")
    yield driven
    driven.close()


def after(driven: Driven, *events: str) -> tuple[int, int]:
    """Show the programs these events of an unused vector; return the delays and the entries without a raise."""
    driven.window("softirq.delay")
    for event in events:
        driven.run(f"on_softirq_{event}", UNUSED)
    window = driven.window("softirq.delay")
    return counted(of(window.rows, driven.CPU, UNUSED)), window.losses["unraised"]


def test_a_raise_between_the_kernels_look_and_the_entry_has_a_run_of_its_own(driven):
    # All bits are cleared first, then interrupts are let in; the second raise may be one of theirs.
    assert after(driven, "raise", "raise", "entry", "exit", "entry", "exit") == (2, 0)
    # Or it came before: then there is no second run, and it is no raise of the next.
    assert after(driven, "raise", "raise", "entry", "exit") == (1, 0)
    assert after(driven, "raise", "entry", "exit") == (1, 0)
    assert after(driven, "entry", "exit") == (0, 1)
    assert after(driven, "raise", "entry", "raise", "raise", "exit", "entry", "exit", "entry", "exit") == (3, 0)


def test_a_raise_does_not_outlive_a_run_whose_entry_was_not_shown(driven):
    assert after(driven, "raise", "exit") == (0, 0)
    time.sleep(0.01)
    assert after(driven, "raise", "entry", "exit") == (1, 0)
    delay = driven.session.array("softirq_rows")[UNUSED]["delay"]
    assert delay["sum"] < 10_000_000


def test_an_interrupt_before_the_handlers_reads_is_not_the_softirqs_time(driven):
    row = driven.session.array("cpus")[driven.CPU : driven.CPU + 1]

    def interrupt(left_ns: int, program: str) -> None:
        """As if one of 1 ms, which ended then, had come between the program's look at the clock and its handler."""
        row["hardirq_ns"] += MS
        row["hardirq_left_ns"] = left_ns
        driven.run(program, UNUSED)

    def run_ns() -> int:
        left_ns = time.monotonic_ns() + 2 * MS
        interrupt(left_ns, "on_softirq_entry")
        interrupt(left_ns + MS + 200_000, "on_softirq_exit")
        return int(row["softirq_run_ns"][0])

    # Between the two interrupts were 0.2 ms, if no real one came.
    assert 200_000 in [run_ns() for _ in range(50)]


def test_single_events_are_limited_but_the_worst_gets_through(attach):
    session = attach("softirq", SOFTIRQ_THRESHOLD_NS=1).session

    def told() -> np.ndarray:
        found = [events for _, table, events in session.events() if table.name == "worst"]
        return np.concatenate(found) if found else np.zeros(0, layout("softirq", "softirq_worst"))

    def sent() -> int:
        """How many single events there were, by all that was counted."""
        rows = session.array("softirq_rows").copy()
        suppressed = rows["run_limit"]["suppressed"].sum() + rows["delay_limit"]["suppressed"].sum()
        counts = rows["run"]["slots"].sum() + rows["delay"]["slots"].sum()
        return int(counts - suppressed - session.array("cpus")["events_lost"].sum())

    most = -sent()
    told()
    least = -sent()
    # The limit counts by units of 2^30 ns: see the beginning of one.
    unit = (time.monotonic_ns() + 100_000_000) // 2**30 + 1
    time.sleep((unit * 2**30 - time.monotonic_ns()) / 1e9)
    while time.monotonic_ns() < unit * 2**30 + 200_000_000:
        pass  # busy, so that the tick goes on and raises softirqs
    limits = session.array("softirq_rows")["run_limit"].reshape(-1, len(VECTORS)).copy()
    lost = int(session.array("cpus")["events_lost"].sum())
    least += sent()
    events = told()
    most += sent()
    assert least <= len(events) <= most
    runs = events[(events["kind"] == RUN) & (events["event"]["time_ns"] >> np.uint64(30) == unit)]
    assert (limits["second"] == unit).any()
    for cpu, vector in np.argwhere(limits["second"] == unit):
        limit = limits[cpu, vector]
        durations = runs["duration_ns"][(runs["event"]["cpu"] == cpu) & (runs["vector"] == vector)]
        assert len(durations) >= limit["sent"] - lost
        assert lost or durations.max() >= limit["longest_ns"]
        # After the first few, each is the longest so far.
        so_far = np.maximum.accumulate(durations)
        assert (durations[8:] > so_far[7:-1]).all()
