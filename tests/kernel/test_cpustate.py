"""cpustate: the parts add up to the wall clock; tasks and the other probes' interrupts are found again in them."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from kernel.traced import Traced
from kernel.workload import SPIN, Task

from tracer.probes.cpustate import _told
from tracer.window import Window

PARTS = ("running_ns", "idle_ns", "softirq_ns", "hardirq_ns")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")

DUTY = """
for _ in range(int(sys.argv[1])):
    spin(0.01)
    time.sleep(0.01)
"""

SEND = """
import socket
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect(sink.getsockname())
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    out.send(b"x")
"""


@pytest.fixture
def switched(attach) -> Traced:
    """The probe, after every CPU has switched: until then there is nothing to add up."""
    traced = attach("cpustate", "softirq")
    for cpu in os.sched_getaffinity(0):
        with Task("", cpu=cpu) as task:
            task.go()
            task.result()
    traced.collect()
    return traced


def row(window: Window, cpu: int) -> np.void:
    (found,) = window.rows[window.rows["cpu"] == cpu]
    return found


def proc_stat(cpu: int) -> dict[str, int]:
    """Return a CPU's time by /proc/stat, ns: not in use, and altogether."""
    (line,) = [line for line in Path("/proc/stat").read_text().splitlines() if line.startswith(f"cpu{cpu} ")]
    ticks = [int(field) for field in line.split()[1:9]]
    return {"idle": (ticks[3] + ticks[4]) * TICK_NS, "all": sum(ticks) * TICK_NS}


def test_the_parts_add_up_to_the_wall_clock(switched):
    cpu = min(os.sched_getaffinity(0))
    with Task(DUTY, 50, cpu=cpu) as task:
        task.go()
        task.result()
    window = switched.collect()["cpustate.time"]
    wall_ns = window.end_ns - window.start_ns
    assert set(window.rows["cpu"]) >= os.sched_getaffinity(0)
    for found in window.rows:
        assert sum(int(found[part]) for part in PARTS) == pytest.approx(wall_ns, rel=0.01), f"CPU {found['cpu']}"


BURSTS = """
to, back = os.pipe(), os.pipe()
if not os.fork():
    os.close(to[1])
    while os.read(to[0], 1):
        os.write(back[1], b"x")
    os._exit(0)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(300):
        os.write(to[1], b"x")
        os.read(back[0], 1)
    time.sleep(0.003)
"""


def test_every_row_adds_up_whatever_is_written_while_it_is_copied(switched):
    snapshots = switched._collector._maps["cpus"]
    cpus = sorted(os.sched_getaffinity(0))
    negative = int(snapshots.live["negative"].sum())
    with ExitStack() as running:
        for cpu in cpus:
            running.enter_context(Task(BURSTS, 8, cpu=cpu)).go()
        snapshots.take()
        for _ in range(1500):
            time.sleep(0.004)
            snapshots.take()
            interval_ns = snapshots.end_ns - snapshots.start_ns
            seen = snapshots.before["switches"] > 0
            told = [
                sum(cpu.parts)
                for rows, now_ns in ((snapshots.before, snapshots.start_ns), (snapshots.after, snapshots.end_ns))
                for cpu in _told(rows[seen], now_ns)
            ]
            # Before anything is cut off: a torn copy shows here.
            apart = np.diff(np.reshape(told, (2, -1)), axis=0) - interval_ns
            assert abs(apart).max() < 200_000, apart
            assert snapshots.stale <= 1
    assert int(snapshots.live["negative"].sum()) == negative


def test_a_task_finds_its_time_in_running(switched):
    cpu = max(os.sched_getaffinity(0))
    before = proc_stat(cpu)
    with Task(DUTY, 50, cpu=cpu) as task:
        switched.collect()
        task.go()
        used = task.result()
        window = switched.collect()["cpustate.time"]
    after = proc_stat(cpu)
    running_ns = int(row(window, cpu)["running_ns"])
    # Others may run there as well: at least as much as the task alone, at most what /proc/stat says was used.
    assert used["run_ns"] * 0.95 <= running_ns
    busy_ns = (after["all"] - after["idle"]) - (before["all"] - before["idle"])
    assert running_ns <= busy_ns * 1.1 + 10 * TICK_NS


def test_idle_is_what_proc_stat_calls_idle(switched):
    cpus = sorted(os.sched_getaffinity(0))
    outer = {cpu: proc_stat(cpu)["idle"] for cpu in cpus}
    switched.collect()
    inner = {cpu: proc_stat(cpu)["idle"] for cpu in cpus}
    time.sleep(1)
    inner = {cpu: proc_stat(cpu)["idle"] - earlier for cpu, earlier in inner.items()}
    window = switched.collect()["cpustate.time"]
    outer = {cpu: proc_stat(cpu)["idle"] - earlier for cpu, earlier in outer.items()}
    # Interrupts over the idle task are idle to /proc/stat, or not: that is up to the kernel's configuration.
    slack_ns = 0.1 * (window.end_ns - window.start_ns)
    for cpu in cpus:
        assert inner[cpu] - slack_ns <= int(row(window, cpu)["idle_ns"]) <= outer[cpu] + slack_ns


def test_softirqs_over_an_idle_cpu_are_seen(switched, namespaces):
    sender, receiver = sorted(os.sched_getaffinity(0))[:2]
    name = namespaces()
    steer = f"open('/sys/class/net/lo/queues/rx-0/rps_cpus', 'w').write('{1 << receiver:x}')"
    with Task(steer, cpu=sender, namespace=name) as task:
        task.go()
        task.result()
    with Task(SEND, 0.5, cpu=sender, namespace=name) as task:
        switched.collect()
        task.go()
        task.result()
        windows = switched.collect()
    received = row(windows["cpustate.time"], receiver)
    runs = windows["softirq.run"].rows
    net_rx = runs[(runs["cpu"] == receiver) & (runs["vector"] == 3)]
    assert int(received["softirq_ns"]) > 5_000_000
    assert int(received["softirq_ns"]) >= int(net_rx["sum"].sum()) > 0


def test_softirq_time_is_the_sum_of_all_vectors(switched):
    cpu = min(os.sched_getaffinity(0))
    switched.collect()
    with Task(SPIN, 0.5, cpu=cpu) as task:
        task.go()
        task.result()
    windows = switched.collect()
    runs = windows["softirq.run"].rows
    for found in windows["cpustate.time"].rows:
        vectors_ns = int(runs["sum"][runs["cpu"] == found["cpu"]].sum())
        # The maps are copied one after the other; what is going on then is in one of them only.
        assert abs(vectors_ns - int(found["softirq_ns"])) < 0.02 * vectors_ns + 500_000


def test_a_cpu_left_out_is_left_alone(attach):
    traced = attach("cpustate")
    cpu = max(os.sched_getaffinity(0))
    live = traced.session.array("cpus")
    live["untraced"][cpu] = 1
    time.sleep(0.05)
    switches = int(live["switches"][cpu])
    with Task(DUTY, 5, cpu=cpu) as task:
        task.go()
        task.result()
    assert int(live["switches"][cpu]) == switches
