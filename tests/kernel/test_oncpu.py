"""oncpu: a spinner with a function of a known name, on one CPU."""

from __future__ import annotations

import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel.stacks import Stacks, compiled

from tracer.kernel import cpus, sideband
from tracer.kernel.symbols import users

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


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine, the answer is waited for."""
    monkeypatch.setattr(users, "_PATIENCE_SECONDS", 30.0)
    monkeypatch.setattr(users, "_BUDGET_SECONDS", 30.0)


#: Spins in its own function, forks one that does the same and ends, execs argv[1] with the rest of the arguments.
RUNNER = """
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static clock_t until;
#define SPIN until = clock() + CLOCKS_PER_SEC / 4; while (clock() < until) for (volatile int i = 0; i < 1000000; i++)
void spins_in_NAME(void) { SPIN; }
void forked_by_NAME(void) { SPIN; _exit(0); }
int main(int argc, char **argv)
{
	spins_in_NAME();
	if (!fork()) forked_by_NAME();
	wait(0);
	if (argc > 1) execv(argv[1], argv + 1);
	return 0;
}
"""


def test_what_a_process_did_before_exec_and_one_that_ended_are_named(attach, tmp_path, unhurried):
    """Three programs one after the other under one pid, in one interval at whose end none of it is there any more."""
    names = ("first", "second", "third")
    programs = []
    for name in names:
        folder = tmp_path / name
        folder.mkdir()
        programs.append(compiled(folder, RUNNER.replace("NAME", name)).rename(folder / name))
    stacks = Stacks(attach("oncpu"), "oncpu")
    with subprocess.Popen(programs) as process:
        process.wait()
    stacks.collect()
    assert stacks.losses["late"] == 0
    found: dict[str, set[str]] = {}
    for row in stacks.rows:
        own = {one for one in stacks.names(row["stack"], b"u") if one.startswith(("spins_in_", "forked_by_"))}
        if row["comm"].decode() in names:
            assert not any(name.startswith("[") for name in stacks.names(row["stack"], b"u")[-1:])
            found.setdefault(row["comm"].decode(), set()).update(own)
    assert found == {name: {f"spins_in_{name}", f"forked_by_{name}"} for name in names}


#: Spins for SECONDS of CPU time and execs argv[1]: built static and not PIE, at the same addresses whatever its NAME.
TWIN = """
#include <time.h>
#include <unistd.h>
void spins_in_NAME(void)
{
	clock_t until = clock() + SECONDS * CLOCKS_PER_SEC;
	while (clock() < until) for (volatile int i = 0; i < 1000000; i++);
}
int main(int argc, char **argv)
{
	spins_in_NAME();
	if (argc > 1) execv(argv[1], argv + 1);
	return 0;
}
"""


def test_programs_with_the_same_addresses_have_each_its_own_time(attach, tmp_path, unhurried):
    """One process, for a quarter of a second the one and for three quarters the other."""
    programs = []
    for name, seconds in (("short", "0.25"), ("longer", "0.75")):
        folder = tmp_path / name
        folder.mkdir()
        text = TWIN.replace("NAME", name).replace("SECONDS", seconds)
        programs.append(compiled(folder, text, "-static", "-no-pie").rename(folder / name))
    stacks = Stacks(attach("oncpu"), "oncpu")
    with subprocess.Popen(programs) as process:
        process.wait()
    stacks.collect()
    rows = stacks.of(process.pid)
    short, longer = rows[rows["comm"] == b"short"], rows[rows["comm"] == b"longer"]
    for some, name, other, seconds in ((short, "short", "longer", 0.25), (longer, "longer", "short", 0.75)):
        assert stacks.weight(some, f"spins_in_{name}", b"u") == pytest.approx(HZ * seconds, rel=0.2, abs=4)
        assert stacks.weight(some, f"spins_in_{other}", b"u") == 0


def test_a_program_that_is_gone_from_before_the_recording_is_not_taken_for_the_next(attach, tmp_path, unhurried):
    """Nobody had asked what it has in memory: it has no names, and not those of what it became."""
    waits = RUNNER.replace("NAME", "early").replace("spins_in_early();", "read(0, &until, 1);\n\tspins_in_early();")
    later = tmp_path / "later"
    later.mkdir()
    early, late = compiled(tmp_path, waits), compiled(later, RUNNER.replace("NAME", "late")).rename(later / "late")
    with subprocess.Popen([early, late], stdin=subprocess.PIPE) as process:
        stacks = Stacks(attach("oncpu"), "oncpu")
        process.communicate(b"g")
    stacks.collect()
    rows = stacks.of(process.pid)
    of_early, of_late = (
        {name for row in rows[rows["comm"] == comm] for name in stacks.names(row["stack"], b"u")}
        for comm in (b"program", b"late")
    )
    assert of_early == {"[unknown before exec: program]"} and stacks.losses["ended"] > 0
    assert "spins_in_late" in of_late and "spins_in_early" not in of_late


def test_when_records_are_lost_nobody_has_the_names_of_what_he_became(attach, tmp_path, unhurried, monkeypatch):
    """Both programs lie at the same addresses, and the second is there at the interval's end."""
    monkeypatch.setattr(sideband, "_LEAST_BYTES_OF_ONE", mmap.PAGESIZE)
    monkeypatch.setattr(sideband, "_MOST_BYTES_OF_ONE", mmap.PAGESIZE)
    later = tmp_path / "later"
    later.mkdir()
    goes_on = RUNNER.replace("\tspins_in_NAME();", "\tfor (;;) spins_in_NAME();").replace("NAME", "late")
    early = compiled(tmp_path, RUNNER.replace("NAME", "early"), "-no-pie")
    late = compiled(later, goes_on, "-no-pie").rename(later / "late")
    stacks = Stacks(attach("oncpu"), "oncpu")
    process = subprocess.Popen([early, late])
    try:
        until = time.monotonic() + 20
        while Path(f"/proc/{process.pid}/comm").read_text() != "late\n":
            assert time.monotonic() < until
            time.sleep(0.05)
        for _ in range(50):
            subprocess.run(["/bin/true"], check=True)
        stacks.collect()
        rows = stacks.of(process.pid)
        rows = rows[np.isin(rows["comm"], (b"program", b"late"))]  # it was a copy of this process before
        for name in ("program", "late"):
            of_it = rows[rows["comm"] == name.encode()]
            assert {one for row in of_it for one in stacks.names(row["stack"], b"u")} == {
                f"[unknown for want of records: {name}]"
            }
        assert stacks.losses["programs"] > 0 and stacks.losses["ended"] > 0
        # It was looked at then: from there on it is known who it is.
        for _ in range(100):
            time.sleep(0.1)
            stacks.collect()
            told = {name for row in stacks.of(process.pid) for name in stacks.names(row["stack"], b"u")}
            if "spins_in_late" in told:
                break
    finally:
        process.kill()
        process.wait()
    assert "spins_in_late" in told and not {"spins_in_early", "forked_by_early"} & told


def test_processes_that_ended_are_counted(attach, tmp_path):
    """One that had been there before the probe: nobody knows what it had in memory."""
    text = "#include <stdio.h>\n#include <time.h>\nint main(void) { getchar(); while (clock() < CLOCKS_PER_SEC / 2); }"
    with subprocess.Popen([compiled(tmp_path, text)], stdin=subprocess.PIPE) as brief:
        stacks = Stacks(attach("oncpu"), "oncpu")
        brief.communicate(b"g")
    stacks.collect()
    assert stacks.losses["ended"] > 0, stacks.losses
    rows = stacks.rows[stacks.rows["comm"] == b"program"]
    assert len(rows) and any(stacks.names(row["stack"], b"u") == ["[process ended]"] for row in rows)
