"""What a real recording's stacks weigh when they are exported: time that the kernel says was spent there."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kernel.command import foreshock
from kernel.stacks import compiled

#: Works for 0.2 s of its own CPU time, then sleeps for 0.3 s, in functions of known names.
PACED = """
#define _GNU_SOURCE
#include <time.h>
static double spent(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9; }
void work_here(double until) { while (spent() < until) for (volatile int i = 0; i < 10000; i++); }
void sleep_here(void) { struct timespec t = { 0, 300000000 }; nanosleep(&t, 0); }
int main(void) { for (;;) { work_here(spent() + 0.2); sleep_here(); } }
"""


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_a_process_weighs_what_the_kernel_says_it_ran_and_slept(tmp_path: Path):
    recording = str(tmp_path / "paced.fsk")
    with subprocess.Popen([compiled(tmp_path, PACED)]) as process:
        before = _cpu_seconds(process.pid)
        done = foreshock("record", "--quiet", "--deep", "--pid", str(process.pid), "--for", "4s", "-o", recording)
        ran = _cpu_seconds(process.pid) - before
        process.kill()
    assert done.returncode == 0, done.stderr
    folded = foreshock("export", recording, "--format", "folded", "--pid", str(process.pid))
    assert folded.returncode == 0, folded.stderr
    weights = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) / 1e9 for line in folded.stdout.splitlines()}
    worked = sum(seconds for stack, seconds in weights.items() if "on-CPU;program;" in stack and "work_here" in stack)
    slept = sum(seconds for stack, seconds in weights.items() if "off-CPU;program;" in stack and "nanosleep" in stack)
    # It began to work before the recording did, and sampling has its chance: 49 a second.
    assert 0.6 * ran - 0.5 < worked < ran + 0.3, (worked, ran)
    # 0.3 s of sleep for every 0.2 s of work; of what goes on at the end nothing is known yet.
    assert 1.2 < slept < 4.1, slept
    assert slept / 0.3 >= worked / 0.2 * 0.6
