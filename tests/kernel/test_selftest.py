"""selftest: every probe passes on this node in time, and what can't run is skipped with the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from tracer.probes import all_probes


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
