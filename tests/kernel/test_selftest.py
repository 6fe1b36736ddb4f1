"""selftest: every probe passes on this node in time, and what can't run is skipped with the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from tracer.kernel import processes
from tracer.probes import all_probes
from tracer.workloads import places
from tracer.workloads.hog import Hog


def selftest(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tracer", "selftest", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_every_probe_passes_within_30_seconds():
    began = time.monotonic()
    done = selftest("--json")
    assert time.monotonic() - began < 30
    checks = json.loads(done.stdout)["checks"]
    assert [check for check in checks if check["status"] == "FAIL"] == []
    assert done.returncode == 0
    assert {check["probe"] for check in checks if check["status"] == "PASS"} >= {"cpustate", "runqueue", "softirq"}
    assert {check["probe"] for check in checks} == set(all_probes())


def test_nothing_that_could_run_is_neither_pass_nor_fail():
    done = selftest(FORESHOCK_PYTHON="/nonexistent")
    assert done.returncode == 3
    *lines, _, total = done.stdout.splitlines()
    assert all(line.startswith("SKIP") and "is no Python that has bcc" in line for line in lines)
    assert total == f"0 passed, 0 failed, {len(all_probes())} skipped."


class _ReadyInTime(Hog):
    """Gets ready within 2 s, or ends."""

    def _command(self) -> list[str]:
        command = super()._command()
        place = command.index("-c") + 1
        limited = "import tracer.workloads._child as c; c._READY_SECONDS = 2.0; c.main(*sys.argv[2:])"
        command[place] = command[place].partition("from ")[0] + limited
        return command


def test_a_workload_waits_for_its_go_longer_than_it_may_take_to_get_ready():
    with _ReadyInTime(places().busy, bursts=1, burst=0.01, rest=0) as hog:
        time.sleep(2.5)
        hog.go()
        assert hog.result()["cpu_ns"] > 0


def test_the_kernels_clock_of_a_process_is_its_own():
    before_ns = time.process_time_ns()
    found_ns = processes.cpu_ns(os.getpid())
    assert before_ns <= found_ns <= time.process_time_ns()
