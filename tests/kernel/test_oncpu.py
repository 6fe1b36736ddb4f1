"""oncpu: a spinner with a function of a known name, on one CPU."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel.stacks import Stacks, compiled

from tracer.kernel import cpus

CPU = 1
HZ = 49
SPINNER = """
void spin_here(volatile unsigned long *count) { for (;;) (*count)++; }
void called_by(volatile unsigned long *count) { spin_here(count); }
int main(void) { volatile unsigned long count = 0; called_by(&count); return 0; }
"""
DIVER = """
#include <stdlib.h>
unsigned dive(unsigned depth, unsigned path)
{
	volatile unsigned spent = 0;
	if (!depth) {
		while (spent < 20000) spent++;
		return spent;
	}
	if (path & 1) return dive(depth - 1, path >> 1) + 1;
	return dive(depth - 1, path >> 1) + 2;
}
int main(void) { for (;;) dive(20, rand()); }
"""


@pytest.fixture
def spinner(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    yield from _running(compiled(tmp_path, SPINNER))


@pytest.fixture
def diver(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    yield from _running(compiled(tmp_path, DIVER))


def _running(program: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([program]) as process:
        os.sched_setaffinity(process.pid, {CPU})
        # The rest of the machine goes elsewhere as far as it can.
        affinity = os.sched_getaffinity(0)
        os.sched_setaffinity(0, affinity - {CPU} or affinity)
        yield process
        os.sched_setaffinity(0, affinity)
        process.kill()


def _collect(stacks: Stacks, seconds: float, intervals: int = 1) -> tuple[int, int, float]:
    """Return the ticks of the spinner's CPU, in tasks and in all, and the seconds they were counted in."""
    busy, every, counted = 0, 0, 0.0
    for _ in range(intervals):
        time.sleep(seconds / intervals)
        clock = stacks.collect()["oncpu.clock"]
        counted += clock.seconds
        for row in clock.rows[clock.rows["cpu"] == CPU]:
            busy, every = busy + int(row["busy"]), every + int(row["busy"] + row["idle"])
    return busy, every, counted


def _cpu_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_a_spinner_has_its_cpu_and_its_function_is_named(attach, spinner):
    stacks = Stacks(attach("oncpu"), "oncpu")
    before = _cpu_seconds(spinner.pid)
    _, every, seconds = _collect(stacks, 2.0, intervals=2)
    used = _cpu_seconds(spinner.pid) - before
    assert every == pytest.approx(HZ * seconds, rel=0.06, abs=2)
    rows = stacks.of(spinner.pid)
    assert set(rows["cpu"]) == {CPU} and set(rows["tid"]) == {spinner.pid} and set(rows["comm"]) == {b"program"}
    # On a machine of its own that is all of the CPU; others may be using it, too.
    assert int(rows["weight"].sum()) == pytest.approx(HZ * used, rel=0.1, abs=3)
    assert stacks.weight(rows, "spin_here", b"u") >= 0.95 * int(rows["weight"].sum())
    best = rows[rows["weight"].argmax()]  # one of several, where two intervals had as many samples
    assert stacks.names(best["stack"], b"u")[:3] == ["spin_here", "called_by", "main"]
    assert stacks.names(best["stack"], b"k") == []
    assert {reason for reason, number in stacks.losses.items() if number} <= {"ended"}


def test_samples_add_up_to_the_clocks_ticks(attach, spinner):
    stacks = Stacks(attach("oncpu"), "oncpu")
    busy = 0
    for _ in range(5):
        time.sleep(0.2)
        busy += int(stacks.collect()["oncpu.clock"].rows["busy"].sum())
    # Ticks between the clock's snapshot and the flip belong to one interval here and to the other there.
    assert int(stacks.rows["weight"].sum()) == pytest.approx(busy, abs=4)


def test_the_idle_task_has_no_rows(attach):
    stacks = Stacks(attach("oncpu"), "oncpu")
    time.sleep(1)
    clock = stacks.collect()["oncpu.clock"]
    ticks = int(clock.rows["busy"].sum() + clock.rows["idle"].sum())
    # A CPU kept from its timer for a while has one tick for all that it missed.
    assert 0 < ticks <= HZ * clock.seconds * len(cpus.online()) + 4
    assert 0 not in stacks.rows["tid"]


def test_limited_to_one_process(attach, spinner):
    stacks = Stacks(attach("oncpu", FILTER_TGID=spinner.pid), "oncpu")
    _collect(stacks, 0.5)
    assert set(stacks.rows["pid"]) == {spinner.pid}


def test_what_does_not_fit_is_counted(attach, diver):
    stacks = Stacks(attach("oncpu", ONCPU_STACKS=4, ONCPU_KEYS=4), "oncpu")
    busy = 0
    for _ in range(4):
        time.sleep(0.5)
        busy += int(stacks.collect()["oncpu.clock"].rows["busy"].sum())
    assert stacks.losses["full"] > 0 and stacks.losses["collided"] > 0
    assert int(stacks.rows["weight"].sum()) + stacks.losses["full"] == pytest.approx(busy, rel=0.05, abs=8)


def test_a_stack_that_does_not_fit_is_called_lost(attach, diver):
    stacks = Stacks(attach("oncpu", ONCPU_STACKS=4), "oncpu")
    for _ in range(4):
        time.sleep(0.5)
        stacks.collect()
    assert stacks.losses["collided"] > 0
    assert any(stacks.names(row["stack"], b"u") == ["[stack lost]"] for row in stacks.rows)


def test_stack_ids_mean_the_same_in_every_interval(attach, diver):
    stacks = Stacks(attach("oncpu", FILTER_TGID=diver.pid), "oncpu")
    _collect(stacks, 2.0, intervals=10)  # Stacks asserts that nothing is told twice
    rows = stacks.of(diver.pid)
    named = sum(int(row["weight"]) for row in rows if stacks.names(row["stack"], b"u")[-20:].count("dive") >= 1)
    assert named >= 0.9 * int(rows["weight"].sum())


def test_processes_that_ended_are_counted(attach, tmp_path):
    brief = compiled(tmp_path, "#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 2); return 0; }")
    stacks = Stacks(attach("oncpu"), "oncpu")
    subprocess.run([brief], check=True)
    stacks.collect()
    assert stacks.losses["ended"] > 0, stacks.losses
    rows = stacks.rows[stacks.rows["comm"] == b"program"]
    assert len(rows) and any(stacks.names(row["stack"], b"u") == ["[process ended]"] for row in rows)
