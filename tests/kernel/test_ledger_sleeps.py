"""The ledger: what a process sleeps for, by the system call and the file, each for a time that it measures itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel.frozen import Frozen
from kernel.traced import Traced
from kernel.workload import Task

CPU = 1
SECONDS = 0.15

#: Sleeps for each thing in turn, nearly always ended by another process; tells how long it neither ran nor waited.
SLEEPER = """
import ctypes, fcntl, pty, select, socket, threading

def asleep_ns(sleep):
    def used():
        return time.thread_time_ns() + int(open("/proc/thread-self/schedstat").read().split()[1])
    before, start = used(), time.monotonic_ns()
    sleep()
    return time.monotonic_ns() - start - (used() - before)

def later(act):
    child = os.fork()
    if not child:
        time.sleep(seconds)
        act()
        os._exit(0)
    return child

def lock(flags):
    fcntl.lockf(os.open(sys.argv[2], os.O_WRONLY), flags)

def locked():
    if not os.fork():
        lock(fcntl.LOCK_EX)
        time.sleep(seconds)
        os._exit(0)
    try:
        while True:
            lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock(fcntl.LOCK_UN)
    except BlockingIOError:
        return asleep_ns(lambda: lock(fcntl.LOCK_EX))

seconds = float(sys.argv[1])
mutex = threading.Lock()
mutex.acquire()
one, other = socket.socketpair()
reading, writing = os.pipe()
master, slave = pty.openpty()
ready = os.eventfd(0)
file = open(sys.argv[2], "w")

def received():
    later(lambda: os.write(other.fileno(), b"x"))
    return asleep_ns(lambda: one.recv(1))

def read(descriptor, act):
    later(act)
    return asleep_ns(lambda: os.read(descriptor, 8))

tell(dict(
    futex=asleep_ns(lambda: mutex.acquire(timeout=seconds)),
    socket=received() + read(one.fileno(), lambda: os.write(other.fileno(), b"x")),
    pipe=read(reading, lambda: os.write(writing, b"x")),
    poll=asleep_ns(lambda: select.select([], [], [], seconds)) + read(ready, lambda: os.eventfd_write(ready, 1)),
    timer=asleep_ns(lambda: time.sleep(seconds)),
    child=asleep_ns(lambda child=later(lambda: None): os.waitpid(child, 0)),
    file=locked(),
    device=read(master, lambda: os.write(slave, b"x\\n")),
))
"""


def test_sleep_is_told_by_what_it_was_for(attach: Callable[..., Traced], tmp_path: Path) -> None:
    with Task(SLEEPER, SECONDS, tmp_path / "file", cpu=CPU) as sleeper:
        traced = attach("ledger", FILTER_TGID=sleeper.pid)
        began_ns = time.monotonic_ns()
        traced.collect()
        sleeper.go()
        # Until it went it waited for that, and it waits for its end now: both in a pipe.
        slack_ns = time.monotonic_ns() - began_ns
        slept = sleeper.result()
        sleeper.result()
        told_ns = time.monotonic_ns()
        (row,) = traced.collect()["ledger.time"].rows
        slack_ns += time.monotonic_ns() - told_ns
    assert row["pid"] == sleeper.pid
    told = {name: int(row[f"{name}_ns"]) for name in slept}
    assert told.pop("pipe") == pytest.approx(slept.pop("pipe") + slack_ns / 2, abs=slack_ns / 2 + 5e6)
    assert told == {name: pytest.approx(ns, rel=0.03, abs=5e6) for name, ns in slept.items()}
    assert min(slept.values()) > 0.9 * SECONDS * 1e9
    assert int(row["sleep_ns"]) < 5e6


def test_a_frozen_file_system_is_a_lock_of_the_kernel(attach: Callable[..., Traced], tmp_path: Path) -> None:
    """Whoever writes to it waits for the reader-writer semaphore that the freezer holds."""
    traced = attach("ledger")
    with Frozen(tmp_path) as frozen:
        traced.collect()
        began_ns = time.monotonic_ns()
        pid = frozen.block()
        status = Path(f"/proc/{pid}/status")
        deadline = time.monotonic() + 30
        while "State:\tD" not in status.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        asleep_ns = time.monotonic_ns()
        time.sleep(0.2)
        thawed_ns = time.monotonic_ns()
        frozen.thaw()
    rows = traced.collect()["ledger.time"].rows
    (row,) = rows[rows["pid"] == pid]
    assert thawed_ns - asleep_ns <= int(row["rwsem_ns"]) <= time.monotonic_ns() - began_ns
