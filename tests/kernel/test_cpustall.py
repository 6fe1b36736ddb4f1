"""Stalls made on purpose are found and measured; busy CPUs that only look like it are not."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel.holding import Holder, has_local_irq, on_cpu
from kernel.traced import Traced, counted

from tracer import histogram
from tracer.kernel.cpus import parse_list
from tracer.layouts import constants
from tracer.window import Window

RESOLUTION_S = 0.25
NEED_RESCHED, FEED = constants("cpustall")["CPUSTALL_NEED_RESCHED"], constants("cpustall")["CPUSTALL_FEED"]


@pytest.fixture
def cpu() -> Iterator[int]:
    """A CPU to hold up; this thread moves to another, and looks on time there however busy it is."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one CPU: nobody can watch it stall")
    held = max(allowed)
    os.sched_setaffinity(0, allowed - {held})
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    yield held
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.sched_setaffinity(0, allowed)


def held_up(traced: Traced, cpu: int, work: Callable[[], None], seconds: float) -> list[dict[str, Window]]:
    """Run ``work`` on ``cpu``, where another task is due all the time; return what was seen during and after.

    Both have real-time priority: on a busy machine an ordinary task begins when it is its turn, and one that has held
    the CPU is made to wait as long. Stalls of others, before and after, are left out of those told one by one.
    """
    begun, done = threading.Event(), threading.Event()

    def nap() -> None:
        while not done.wait(0.02):
            pass

    def hold() -> None:
        begun.set()
        work()

    other = on_cpu(cpu, nap, fifo=2)
    traced.collect()
    began_ns = time.monotonic_ns()
    worker = on_cpu(cpu, hold, fifo=1)
    begun.wait()
    time.sleep(seconds * 0.8)
    seen = [traced.collect()]
    worker.join()
    ended_ns = time.monotonic_ns()
    done.set()
    other.join()
    # The stall's end is noticed at the next switch or sample.
    time.sleep(0.3)
    seen.append(traced.collect())
    for windows in seen:
        told = windows["cpustall.stalls"]
        ours = (told.rows["since_ns"] >= began_ns) & (told.rows["since_ns"] <= ended_ns)
        windows["cpustall.stalls"] = replace(told, rows=told.rows[ours])
    return seen


def of(windows: list[dict[str, Window]], table: str, cpu: int) -> np.ndarray:
    rows = np.concatenate([each[f"cpustall.{table}"].rows for each in windows])
    return rows[rows["cpu"] == cpu]


def assert_one_stall(windows: list[dict[str, Window]], cpu: int, seconds: float) -> None:
    """Of all that held the CPU up, one took so long: a busy machine has stalls of its own."""
    slots = of(windows, "stall", cpu)["slots"].sum(axis=0)
    least, most = (histogram.slot_of(int((seconds + end) * 1e9)) for end in (-2 * RESOLUTION_S, 2 * RESOLUTION_S))
    assert slots[least : most + 1].sum() >= 1, np.flatnonzero(slots)


def test_kernel_code_that_lets_nobody_in_is_a_stall(attach, cpu):
    tid = []

    def work() -> None:
        tid.append(threading.get_native_id())
        holder.hold()

    with Holder(2.0) as holder:
        windows = held_up(attach("cpustall"), cpu, work, 2.0)
    assert_one_stall(windows, cpu, 2.0)
    told = of(windows, "stalls", cpu)
    assert set(told["pid"]) == set(tid)
    assert all(told["evidence"] & NEED_RESCHED)
    assert max(told["duration_ns"]) / 1e9 == pytest.approx(1.5, abs=0.7)
    stack = told["stack"][0][told["stack"][0] > 0]
    assert len(stack) > 3
    assert all(address >> 47 == (1 << 17) - 1 for address in stack.tolist())
    assert b"stall" in of(windows[:1], "open", cpu)["kind"]


def test_a_softirq_that_does_not_end_is_a_stall(attach, cpu):
    with Holder(2.0) as holder:
        windows = held_up(attach("cpustall"), cpu, holder.hold_softirq, 2.0)
    assert_one_stall(windows, cpu, 2.0)
    assert set(of(windows, "stalls", cpu)["context"]) == {b"softirq NET_RX"}
    still = of(windows[:1], "open", cpu)
    softirq = still[still["kind"] == b"softirq"]
    assert softirq["vector"].tolist() == [3]
    assert softirq["age_ns"][0] / 1e9 == pytest.approx(1.6, abs=0.5)


def test_a_softirq_over_an_idle_cpu_is_seen_from_the_other(attach, cpu, namespaces):
    steered = steer_packets(namespaces(), to=cpu)
    traced = attach("cpustall")
    traced.collect()
    with Holder(2.0) as holder:
        # Sent from here; received, with nothing else to do there, on the other CPU.
        steered(holder.hold_softirq)
        time.sleep(1.6)
        windows = [traced.collect()]
        time.sleep(0.9)
    windows.append(traced.collect())
    still = of(windows[:1], "open", cpu)
    softirq = still[still["kind"] == b"softirq"]
    assert softirq["vector"].tolist() == [3]
    assert softirq["age_ns"][0] / 1e9 == pytest.approx(1.6, abs=0.5)
    # Whether the idle CPU's own clock comes is up to the kernel; if it does, it has to say the same.
    assert set(of(windows, "stalls", cpu)["context"]) <= {b"softirq NET_RX"}


def steer_packets(namespace: str, to: int) -> Callable[[Callable[[], None]], None]:
    """Have one CPU receive what ``namespace`` sends itself; return how to run something in it."""
    rps = f"echo {1 << to:x} > /sys/class/net/lo/queues/rx-0/rps_cpus"
    subprocess.run(["ip", "netns", "exec", namespace, "sh", "-c", rps], check=True)

    def run(work: Callable[[], None]) -> None:
        def inside() -> None:
            with open(f"/run/netns/{namespace}") as file:
                assert ctypes.CDLL(None).setns(file.fileno(), 0) == 0
            work()

        # A namespace is entered by one thread alone.
        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()

    return run


@pytest.mark.skipif(not has_local_irq(), reason="before v6.14 no program can switch interrupts off")
def test_interrupts_that_are_off_are_a_stall(attach, cpu):
    with Holder(1.3, interrupts=False) as holder:
        windows = held_up(attach("cpustall"), cpu, holder.hold, 1.3)
    assert_one_stall(windows, cpu, 1.3)
    assert set(of(windows, "stalls", cpu)["context"]) == {b"kernel code, interrupts off"}


def test_the_watchdog_waits_for_as_long_as_the_stall(attach, cpu):
    period_s = watchdog_period_s()
    with Holder(period_s + 1.0) as holder:
        windows = held_up(attach("cpustall"), cpu, holder.hold, period_s + 1.0)
    # It comes once per period, so at the latest about 1 s before the stall ends.
    assert of(windows, "feed", cpu)["sum"].sum() >= 0.35e9
    told = of(windows, "stalls", cpu)
    assert all((told["evidence"] & FEED > 0) == (told["feed_ns"] > 0))


def test_the_watchdog_is_fed_every_period(attach):
    period_s = watchdog_period_s()
    traced = attach("cpustall")
    traced.collect()
    time.sleep(2.2 * period_s)
    feed = traced.collect()["cpustall.feed"].rows
    watched = set(parse_list(Path("/proc/sys/kernel/watchdog_cpumask").read_text())) & os.sched_getaffinity(0)
    assert watched
    for cpu in watched:
        assert 2 <= counted(feed[feed["cpu"] == cpu]) <= 3
        assert 0 < feed[feed["cpu"] == cpu]["sum"][0] < 1e9
        # From here on the kernel's own count goes; two periods, for this process may have been held up.
        fed_ns = int(traced.session.array("cpustall_rows")["fed_ns"][cpu])
        assert 0 <= time.monotonic_ns() - fed_ns < 2e9 * period_s


def test_a_cpu_without_a_clock_gets_one_without_privileges_of_ours(cpu):
    """As one that comes online later: to take a CPU away from everybody here would be no test but a fault."""
    script = """
import sys, time
from tracer.kernel import cpus, privilege
from tracer.kernel.job import Options, ordered
from tracer.kernel.session import attach
from tracer.probes import all_probes
cpu, every = int(sys.argv[1]), all_probes()
others = [other for other in cpus.online() if other != cpu]
with attach(ordered([every["cpustall"]], every), Options(cpus.possible_count(), others)) as session:
    session.delegate()
    privilege.keep_only(())
    sampled_ns = session.array("cpustall_rows")["sampled_ns"]
    for _ in range(2):
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        print(int(sampled_ns[cpu] > 0))
        assert session.add_clocks(cpu) and session.add_clocks(cpu)
    assert not session.add_clocks(cpus.possible_count())
"""
    command = ["taskset", "-c", str(cpu), sys.executable, "-c", script, str(cpu)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)
    assert done.stdout.split() == ["0", "1"], done.stderr


def spin_in_user_mode(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def stay_in_the_kernel(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.getrandom(1 << 25)


@pytest.mark.parametrize(("work", "fifo"), [(spin_in_user_mode, True), (stay_in_the_kernel, False)])
def test_busy_tasks_are_no_stall(attach, cpu, work, fifo):
    traced = attach("cpustall")
    traced.collect()
    on_cpu(cpu, lambda: work(2.5), fifo=fifo).join()
    windows = [traced.collect()]
    assert counted(of(windows, "stall", cpu)) == 0
    assert not len(of(windows, "stalls", cpu))
    assert not {b"stall", b"softirq", b"hardirq", b"heartbeat"} & set(of(windows, "open", cpu)["kind"])


def test_busy_cpus_have_a_heartbeat(attach, cpu):
    traced = attach("cpustall")
    worker = on_cpu(cpu, lambda: spin_in_user_mode(0.5))
    time.sleep(0.3)
    age_ns = time.monotonic_ns() - int(traced.session.array("cpustall_rows")["heartbeat_ns"][cpu])
    worker.join()
    assert age_ns < 250_000_000


def watchdog_period_s() -> float:
    """Return how often the kernel's watchdog wants to be fed. Source: kernel/watchdog.c, set_sample_period()."""
    sysctl = Path("/proc/sys/kernel")
    if (sysctl / "soft_watchdog").read_text().strip() != "1":
        pytest.skip("kernel.soft_watchdog is off")
    return int((sysctl / "watchdog_thresh").read_text()) * 2 / 5
