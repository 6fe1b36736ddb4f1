"""The ledger: a rank that has slept since before the start has a row of its own, with what it sleeps for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest
from kernel.traced import Traced

from tracer.kernel.threadtimes import SLEEPS
from tracer.window import Window

#: What a program sleeps for from its first moment on, until a byte comes.
PROGRAMS = {
    "futex": "import threading; lock = threading.Lock(); lock.acquire(); tell(); lock.acquire()",
    "pipe": "import os; tell(); os.read(0, 1)",
    "socket": "import socket; one, other = socket.socketpair(); tell(); one.recv(1)",
    "poll": "import select; tell(); select.select([], [], [], 600)",
    "timer": "import time; tell(); time.sleep(600)",
    "stopped": "import os, signal; tell(); os.kill(os.getpid(), signal.SIGSTOP)",
    "file": "import fcntl, sys; one, two = open(sys.executable), open(sys.executable); tell()\n"
    "for file in (one, two): fcntl.flock(file, fcntl.LOCK_EX)",
    "child": "import os, time; child = os.fork() or time.sleep(600); tell(); os.waitpid(child, 0)",
}
Start = Callable[[str, int], "subprocess.Popen[bytes]"]
_TELL = "import os\ndef tell(): os.write(1, b'x')\n"


@pytest.fixture
def asleep() -> Iterator[Start]:
    """Return a function that starts a rank that sleeps."""
    with ExitStack() as undo:

        def start(program: str, rank: int) -> subprocess.Popen[bytes]:
            variables = {"RANK": str(rank), "WORLD_SIZE": "64", "SLURM_JOB_ID": "48213"}
            command = [sys.executable, "-I", "-S", "-c", _TELL + program]
            made = subprocess.Popen(
                command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
            )
            undo.callback(end, made)
            assert made.stdout and made.stdout.read(1) == b"x"
            return made

        yield start


def end(made: subprocess.Popen[bytes]) -> None:
    os.killpg(made.pid, signal.SIGKILL)
    made.wait()
    for file in (made.stdin, made.stdout):
        if file:
            file.close()


def rows_of(windows: dict[str, Window], pid: int) -> np.ndarray:
    rows = windows["ledger.time"].rows
    return rows[rows["pid"] == pid]


def until_told(traced: Traced, pids: list[int]) -> None:
    """Collect until all are known; a turn over all processes comes with the first interval."""
    deadline = time.monotonic() + 30
    while not all(len(rows_of(windows, pid)) for windows in [traced.collect()] for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ranks_that_never_wake_have_a_row_with_what_they_sleep_for(
    asleep: Start, attach: Callable[..., Traced]
) -> None:
    pids = {kind: asleep(program, rank).pid for rank, (kind, program) in enumerate(PROGRAMS.items())}
    time.sleep(0.2)
    # Room for few: those that run and wait do not push them out.
    traced = attach("jobs", "ledger", LEDGER_SUBJECTS=2 * len(PROGRAMS))
    until_told(traced, [*pids.values()])
    traced.collect()
    began_ns = time.monotonic_ns()
    time.sleep(0.3)
    windows = traced.collect()
    slept_ns = time.monotonic_ns() - began_ns
    for kind, pid in pids.items():
        (row,) = rows_of(windows, pid)
        assert {name: int(row[f"{name}_ns"]) for name in SLEEPS if name != kind and row[f"{name}_ns"]} == {}, kind
        assert int(row[f"{kind}_ns"]) == pytest.approx(slept_ns, rel=0.1), kind
        assert (row["threads"], row["running_ns"], row["comm"].decode()[:6]) == (1, 0, "python"), kind
        assert int(row["wall_ns"]) == int(row[f"{kind}_ns"]) and row["cgroup"]


def test_one_that_wakes_after_all_is_told_as_any_other(asleep: Start, attach: Callable[..., Traced]) -> None:
    one = asleep("import os; tell(); os.read(0, 1)\nwhile True: pass", 3)
    assert one.stdin
    pid = one.pid
    traced = attach("jobs", "ledger")
    until_told(traced, [pid])
    traced.collect()
    one.stdin.write(b"x")
    time.sleep(0.5)
    rows = rows_of(traced.collect(), pid)
    # A wait that goes on belongs to the interval in which it ends.
    parts = (
        "running_ns",
        "waiting_ns",
        "softirq_ns",
        "hardirq_ns",
        "open_wait_ns",
        "unknown_ns",
        *(f"{name}_ns" for name in SLEEPS),
    )
    assert sum(int(rows[name].sum()) for name in parts) == pytest.approx(int(rows["wall_ns"].sum()), rel=0.02)
    assert len(rows) == 1 and rows["threads"][0] == 1
    assert rows["running_ns"][0] > 0
