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


def _told_by_proc(pid: int) -> tuple[float, int]:
    """Return how long a process has run in s, and how often it went to sleep."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    return (int(fields[11]) + int(fields[12])) / 100, int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def test_a_process_weighs_what_the_kernel_says_it_ran_and_slept(tmp_path: Path):
    recording = str(tmp_path / "paced.fsk")
    with subprocess.Popen([compiled(tmp_path, PACED)]) as process:
        before = _told_by_proc(process.pid)
        done = foreshock("record", "--quiet", "--deep", "--pid", str(process.pid), "--for", "4s", "-o", recording)
        after = _told_by_proc(process.pid)
        process.kill()
    ran, sleeps = after[0] - before[0], after[1] - before[1]
    assert done.returncode == 0, done.stderr
    folded = foreshock("export", recording, "--format", "folded", "--pid", str(process.pid), "--idle")
    assert folded.returncode == 0, folded.stderr
    weights = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) / 1e9 for line in folded.stdout.splitlines()}
    worked = sum(seconds for stack, seconds in weights.items() if "on-CPU;program;" in stack and "work_here" in stack)
    slept = sum(seconds for stack, seconds in weights.items() if "off-CPU;program;" in stack and "nanosleep" in stack)
    # It runs and sleeps before the recording begins and after it ends, as well; and sampling has its chance.
    assert 0.3 * ran < worked < ran + 0.3, (worked, ran)
    assert 0.3 * 0.3 * sleeps < slept < 4.5, (slept, sleeps)
    assert slept >= 0.3, slept
