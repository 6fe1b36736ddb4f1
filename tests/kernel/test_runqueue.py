"""runqueue: waits behind hogs of known length, counts against the kernel's own context switches and run delay."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from kernel.traced import Traced, counted
from kernel.workload import HOG, SPIN, UNSEEN, Task

from tracer import histogram
from tracer.layouts import constants
from tracer.window import Window

# Both ends run on the same CPU: each round switches to the other end and back.
PING_PONG = """
rounds = int(sys.argv[1])
to, back = os.pipe(), os.pipe()
child = os.fork()
if not child:
    for _ in range(rounds):
        os.write(back[1], os.read(to[0], 1))
    os._exit(0)
before = use()
for _ in range(rounds):
    os.write(to[1], b"x")
    os.read(back[0], 1)
after = use()
tell({name: after[name] - before[name] for name in after})
go()
os.waitpid(child, 0)
"""

# The other end is elsewhere and answers at once: many wake-ups meet a task that has not gone to sleep yet. Then
# it runs for long without sleeping, so that a wait begun by such a wake-up would be as long.
RACE = """
to, back = os.pipe(), os.pipe()
child = os.fork()
if not child:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.close(to[1])
    os.set_blocking(to[0], False)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        try:
            if not os.read(to[0], 1):
                os._exit(0)
            os.write(back[1], b"x")
        except BlockingIOError:
            pass
    os._exit(1)
os.close(to[0])
os.close(back[1])
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
for _ in range(5):
    for _ in range(2000):
        os.write(to[1], b"x")
        os.read(back[0], 1)
    spin(0.05)
    time.sleep(0.05)
os.close(to[1])
os.waitpid(child, 0)
"""

SLEEPER = "time.sleep(0.05)"

# What the kernel keeps of each second for ordinary tasks behind a real-time one.
FAIR_SERVER_NS = 50_000_000


def own(attach, task: Task, **constants: int) -> Traced:
    """Attach the probe for one task alone: what else runs on the machine then changes nothing."""
    traced = attach("runqueue", FILTER_TGID=task.pid, **constants)
    traced.collect()
    return traced


def slots(window: Window) -> np.ndarray:
    return window.rows["slots"].sum(axis=0)


def test_names_the_hog_that_a_task_waited_behind(attach):
    cpu = max(os.sched_getaffinity(0))
    with Task(HOG, 0.5, cpu=cpu) as hog, Task(SLEEPER, cpu=cpu) as victim:
        traced = own(attach, victim)
        victim.go()
        time.sleep(0.01)
        hog.go()
        hog.result()
        used = victim.result()
        windows = traced.collect()
    worst = windows["runqueue.worst"].rows
    longest = worst[worst["wait_ns"].argmax()]
    # It slept 40 ms of the hog's 500 on, and may have been let in before the end.
    assert 100e6 < longest["wait_ns"] < 700e6
    assert int(longest["wait_ns"]) == pytest.approx(used["wait_ns"], rel=0.1)
    assert histogram.max_ns(slots(windows["runqueue.wait"])) >= longest["wait_ns"]
    assert (longest["pid"], longest["tgid"], longest["holder_pid"]) == (victim.pid, victim.pid, hog.pid)
    assert longest["holder_prio"] == 99 - 10
    assert longest["holder_ns"] > 0.9 * longest["wait_ns"] - FAIR_SERVER_NS
    assert longest["waited_cpu"] == longest["cpu"] == cpu
    assert longest["covered_ns"] > 0.9 * longest["wait_ns"]


def test_an_ordinary_holder_has_the_priority_of_its_niceness(attach):
    cpu = max(os.sched_getaffinity(0))
    nicer = "os.setpriority(os.PRIO_PROCESS, 0, 3)\n" + SPIN
    with Task(nicer, 0.4, cpu=cpu) as holder, Task(SPIN, 0.2, cpu=cpu) as waiter:
        traced = own(attach, waiter, RUNQUEUE_THRESHOLD_NS=500_000)
        for task in (holder, waiter):
            task.go()
        waiter.result()
        holder.result()
        worst = traced.collect()["runqueue.worst"].rows
    assert set(worst["holder_prio"][worst["holder_pid"] == holder.pid]) == {120 + 3}


def test_counts_a_wait_for_every_switch_of_a_ping_pong(attach):
    cpu = min(os.sched_getaffinity(0))
    with Task(PING_PONG, 3000, cpu=cpu) as task:
        traced = own(attach, task)
        task.go()
        used = task.result()
        window = traced.collect()["runqueue.wait"]
    # Off the CPU once a round, either asleep or because the other end was woken first.
    switches = used["voluntary"] + used["involuntary"]
    assert switches >= 3000
    assert switches * (1 - UNSEEN) - 5 <= counted(window.rows) <= switches + 10
    assert window.losses["collided"] == window.losses["negative"] == 0


def test_counts_preemptions_and_sums_up_to_the_run_delay(attach):
    cpu = min(os.sched_getaffinity(0))
    with Task(SPIN, 1.5, cpu=cpu) as one, Task(SPIN, 1.5, cpu=cpu) as other:
        traced = own(attach, one)
        other.go()
        one.go()
        used = one.result()
        other.result()
        window = traced.collect()["runqueue.wait"]
    switches = used["voluntary"] + used["involuntary"]
    assert used["involuntary"] > 20
    assert abs(counted(window.rows) - switches) <= 0.1 * switches + 3
    # It got half of the CPU at most; the rest of the time it waited.
    assert used["wait_ns"] > 0.4e9
    assert int(window.rows["sum"].sum()) == pytest.approx(used["wait_ns"], rel=0.1)


def test_an_idle_machine_has_no_endless_waits_and_the_idle_task_none(attach):
    began_ns = time.monotonic_ns()
    traced = attach("runqueue", RUNQUEUE_THRESHOLD_NS=1)
    time.sleep(3)
    windows = traced.collect()
    total = slots(windows["runqueue.wait"])
    assert total[-1] == 0
    assert histogram.max_ns(total) <= (time.monotonic_ns() - began_ns) * 1.1
    worst = windows["runqueue.worst"].rows
    assert len(worst) and (worst["pid"] > 0).all()
    assert windows["runqueue.wait"].losses["negative"] == 0


def test_wake_ups_of_a_running_task_are_no_waits(attach):
    here, there = sorted(os.sched_getaffinity(0))[:2]
    with Task(RACE, there, cpu=here) as task:
        traced = own(attach, task)
        task.go()
        used = task.result()
        window = traced.collect()["runqueue.wait"]
    # Real-time and alone: no wait comes near the 50 ms that it runs or sleeps without being woken.
    assert histogram.count_above(slots(window), 40_000_000) == 0
    switches = used["voluntary"] + used["involuntary"]
    assert counted(window.rows) <= switches + 10


def moved_while_waiting(attach, origin: int, to: int) -> tuple[np.void, int]:
    """Wait behind a hog, be moved to another CPU; return what is told about it and the hog's pid."""
    with Task(HOG, 0.4, cpu=origin) as hog, Task(SLEEPER, cpu=origin) as victim:
        traced = own(attach, victim)
        victim.go()
        time.sleep(0.01)
        hog.go()
        time.sleep(0.2)
        os.sched_setaffinity(victim.pid, {to})
        victim.result()
        worst = traced.collect()["runqueue.worst"].rows
        hog.result()
    return worst[worst["wait_ns"].argmax()], hog.pid


def test_a_wait_is_told_where_it_was_spent(attach):
    to, origin = sorted(os.sched_getaffinity(0))[:2]
    for _ in range(3):
        longest, hog = moved_while_waiting(attach, origin, to)
        if longest["cpu"] == to:
            break  # else it was let in before it was moved
    assert (longest["waited_cpu"], longest["cpu"]) == (origin, to)
    assert longest["holder_pid"] == hog
    assert 100e6 < longest["wait_ns"] < 390e6


def test_a_filtered_task_is_all_that_is_counted(attach):
    cpu = min(os.sched_getaffinity(0))
    with Task(SLEEPER, cpu=cpu) as task:
        traced = own(attach, task)
        time.sleep(0.3)  # the machine goes on, the task is asleep
        assert counted(traced.collect()["runqueue.wait"].rows) == 0
        task.go()
        task.result()
        assert 1 <= counted(traced.collect()["runqueue.wait"].rows) < 20


# A timer that is over already wakes the task before it has gone to sleep; then it sleeps until it is told to go on.
WOKEN_AWAKE = """
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
for _ in range(int(sys.argv[1])):
    time.sleep(1e-9)
    tell("asleep")
    go()
"""


def test_a_wake_up_while_running_leaves_no_wait_to_the_sleep_that_follows(attach):
    rounds, places = 100, constants("runqueue")
    with Task(WOKEN_AWAKE, rounds, cpu=max(os.sched_getaffinity(0))) as task:
        traced = own(attach, task)
        ways = traced.session.array("runqueue_sets")["ways"][task.pid & (places["RUNQUEUE_SETS"] - 1)]
        tag = (task.pid >> places["RUNQUEUE_SET_BITS"]) + 1
        left = 0
        task.go()
        for _ in range(rounds):
            assert task.result() == "asleep"
            time.sleep(0.002)
            left += any(int(word) >> places["RUNQUEUE_TIME_BITS"] == tag for word in ways)
            task.go()
        task.result()
        waits = traced.collect()["runqueue.wait"]
    assert left == 0
    # It was woken so often to go on, and no such wake-up may have been forgotten.
    assert counted(waits.rows) >= rounds * (1 - UNSEEN)
    assert waits.losses["unmatched"] <= UNSEEN * rounds
