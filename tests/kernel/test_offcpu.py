"""offcpu: sleepers and blocked readers that know for how long they were away."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from kernel.stacks import Stacks, compiled
from kernel.workload import Task

CPU = 1
SLEEP = "for _ in range(int(sys.argv[1])): time.sleep(float(sys.argv[2]))"
SLEEPER = """
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
void sleep_here(void)
{
	struct timespec time = {0, 50000000};
	nanosleep(&time, 0);
}
void calls_sleep(void)
{
	sleep_here();
}
int main(void)
{
	char go;
	read(0, &go, 1);
	for (int i = 0; i < 20; i++) {
		if (i == 5) prctl(PR_SET_NAME, "renamed");
		calls_sleep();
	}
	read(0, &go, 1);
	return 0;
}
"""
STORM = """
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 3000; i++) {
		if (!fork()) {
			usleep(1);
			_exit(0);
		}
		wait(0);
	}
	return 0;
}
"""
#: Waits for ever, for a child that shares its memory, in D; a thread of it for a futex.
FOREVER = """
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *futex(void *x) { pthread_mutex_lock(&mutex); return x; }
int main(void)
{
	pthread_t thread;
	char go;
	pthread_mutex_lock(&mutex);
	read(0, &go, 1);
	pthread_create(&thread, 0, futex, 0);
	if (!vfork()) {
		pause();
		_exit(0);
	}
	return 0;
}
"""


def _waited_ns(pid: int) -> int:
    """Return how long a process waited for a CPU, which is off-CPU time, too."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])


def _sleeps(stacks: Stacks, pid: int) -> np.ndarray:
    return np.array(
        [row for row in stacks.of(pid) if "do_nanosleep" in stacks.names(row["stack"], b"k")], dtype=stacks.rows.dtype
    )


def test_a_sleepers_time_is_all_there(attach, tmp_path):
    program = compiled(tmp_path, SLEEPER)
    with subprocess.Popen([program], stdin=subprocess.PIPE) as process:
        stacks = Stacks(attach("offcpu"), "offcpu")
        before = _waited_ns(process.pid)
        process.stdin.write(b"g")
        process.stdin.flush()
        for _ in range(8):
            time.sleep(0.25)
            stacks.collect()
        sleeps = _sleeps(stacks, process.pid)
        assert int(sleeps["count"].sum()) == 20
        assert 20 * 50e6 <= int(sleeps["weight"].sum()) <= 20 * 51e6 + _waited_ns(process.pid) - before
        assert set(sleeps["state"]) == {b"S"} and set(sleeps["comm"]) == {b"program", b"renamed"}
        assert int(sleeps["count"][sleeps["comm"] == b"program"].sum()) == 5  # of one stack with the others
        kernel, user = (stacks.names(sleeps[0]["stack"], kind) for kind in (b"k", b"u"))
        # No frames of our own: the first is the scheduler's.
        assert kernel[0] in ("__schedule", "schedule") and "hrtimer_nanosleep" in kernel
        # The C library has no frame pointer of its own there, which hides its caller, sleep_here.
        assert "calls_sleep" in user and user.index("calls_sleep") < user.index("main")
        process.stdin.write(b"g")


def test_a_block_keeps_its_stack_over_many_intervals(attach):
    """The reader's halves change four times while the task is blocked, and other stacks come and go."""
    with Task("time.sleep(1.0)", cpu=CPU) as task, Task(SLEEP, 300, 0.003, cpu=CPU):
        stacks = Stacks(attach("offcpu"), "offcpu")
        task.go()
        for _ in range(5):
            time.sleep(0.25)
            stacks.collect()
        used = task.result()
        stacks.collect()
        sleeps = _sleeps(stacks, task.pid)
        assert int(sleeps["count"].sum()) == 1
        assert 1e9 <= int(sleeps["weight"].sum()) <= 1.02e9 + used["wait_ns"]


def test_a_blocked_reader_of_a_pipe(attach):
    with Task("tell('soon')\ngo()", cpu=CPU) as task:
        stacks = Stacks(attach("offcpu"), "offcpu")
        task.go()
        assert task.result() == "soon"
        time.sleep(0.5)
        task.go()
        task.result()
        stacks.collect()
        blocks = stacks.of(task.pid)
        names = [name for row in blocks for name in stacks.names(row["stack"], b"k")]
        assert any("pipe_read" in name for name in names)
        assert int(blocks["weight"].max()) >= 0.3e9


def test_who_ended_a_block_is_noted(attach):
    """A pipe's reader is woken by this very thread, a sleeper by the timer's interrupt (or its softirq)."""
    with Task("tell('soon')\ngo()\nfor _ in range(5): time.sleep(0.02)", cpu=CPU) as task:
        stacks = Stacks(attach("offcpu"), "offcpu")
        task.go()
        assert task.result() == "soon"
        time.sleep(0.3)
        task.go()
        task.result()
        stacks.collect()
        blocks = stacks.of(task.pid)
        own = Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_bytes().strip()
        read = [row for row in blocks if any("pipe_read" in name for name in stacks.names(row["stack"], b"k"))]
        assert {(row["waker_kind"], row["waker_comm"]) for row in read if row["weight"] > 100e6} == {(b"t", own)}
        slept = _sleeps(stacks, task.pid)
        assert int(slept["count"].sum()) == 5 and set(slept["waker_kind"]) <= {b"h", b"s"}


def test_short_blocks_are_counted_and_sampled(attach):
    with Task(SLEEP, 400, 0.0005, cpu=CPU) as task:
        stacks = Stacks(attach("offcpu", FILTER_TGID=task.pid, OFFCPU_MINIMUM_NS=20_000_000), "offcpu")
        task.go()
        task.result()
        short = stacks.collect()["offcpu.short"].rows
        assert int(short["short_blocks"].sum()) == pytest.approx(400, abs=20)
        assert int(short["short_ns"].sum()) >= 400 * 0.0005e9 * 0.95
        assert len(_sleeps(stacks, task.pid)) == 0


def test_a_long_block_without_a_stack_keeps_its_time(attach):
    body = "for _ in range(40):\n    for _ in range(12): time.sleep(0.0001)\n    time.sleep(0.01)"
    with Task(body, cpu=CPU) as task:
        constants = {"FILTER_TGID": task.pid, "OFFCPU_MINIMUM_NS": 5_000_000, "OFFCPU_SAMPLE": 1 << 30}
        stacks = Stacks(attach("offcpu", **constants), "offcpu")
        task.go()
        task.result()
        stacks.collect()
        rows = stacks.of(task.pid)
        without = rows[rows["stack"] == 0]
        assert int(without["count"].sum()) == stacks.losses["not_taken"] >= 30
        assert int(without["weight"].sum()) == pytest.approx(40 * 0.01e9, rel=0.3)


def test_a_fork_storm_leaves_nothing_behind(attach, tmp_path):
    """Six times as many processes as there is room for, each of which blocks once."""
    storm = compiled(tmp_path, STORM)
    stacks = Stacks(attach("offcpu", OFFCPU_TASKS=512), "offcpu")
    subprocess.run([storm], check=True)
    stacks.collect()
    assert stacks.losses["full"] == 0


def test_what_does_not_fit_is_counted(attach):
    stacks = Stacks(attach("offcpu", OFFCPU_TASKS=4, OFFCPU_KEYS=2, OFFCPU_STACKS=4), "offcpu")
    with Task(SLEEP, 100, 0.003, cpu=CPU) as task:
        task.go()
        task.result()
        stacks.collect()
    assert stacks.losses["full"] > 0
    assert len(stacks.rows) <= 2


def test_blocks_that_go_on_at_the_end_are_told(attach, tmp_path):
    """Of two programs alike, one blocks before the probe comes, one after: the first is in /proc, the second noted."""
    program = compiled(tmp_path, FOREVER)
    with ExitStack() as undo:
        early, late = (undo.enter_context(_for_ever(program)) for _ in range(2))
        early.stdin.write(b"g")
        _until_in_d(early.pid)
        began_ns = time.monotonic_ns()
        stacks = Stacks(attach("offcpu"), "offcpu")
        late.stdin.write(b"g")
        _until_in_d(late.pid)
        blocked_ns = time.monotonic_ns()
        time.sleep(0.3)
        stacks.collect()
        assert not len(stacks.of(early.pid))
        ended_ns = time.monotonic_ns()
        stacks.collect(complete=True)
        most_ns = time.monotonic_ns() - began_ns
        for process, kind, least_ns in ((early, b"a", 0.3e9), (late, b"o", ended_ns - blocked_ns)):
            rows = stacks.of(process.pid)
            rows = rows[rows["waker_kind"] == kind]
            # The program, which waits for its child, and its thread.
            assert sorted(rows["state"]) == [b"D", b"S"], rows
            assert set(rows["count"]) == {1} and set(rows["comm"]) == {b"program"}
            assert least_ns <= rows["weight"].min() and rows["weight"].max() <= most_ns
            blocked, futex = (rows[rows["state"] == state][0]["stack"] for state in (b"D", b"S"))
            assert any("fork" in name or "kernel_clone" in name for name in stacks.names(blocked, b"k"))
            assert any("futex" in name for name in stacks.names(futex, b"k"))
            assert ("vfork" in stacks.names(blocked, b"u")) == (process is late)
        assert stacks.losses["unasked"] == 0


@contextmanager
def _for_ever(program: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start it in a session of its own, and end all of that: a vfork's child outlives its parent."""
    with subprocess.Popen([program], stdin=subprocess.PIPE, bufsize=0, start_new_session=True) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _until_in_d(pid: int) -> None:
    until = time.monotonic() + 20
    while Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] != b"D":
        assert time.monotonic() < until
        time.sleep(0.01)
