"""doctor on this machine: it can run as root, and says what to do as an ordinary user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def doctor(checkout: Path, *options: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*before, sys.executable, "-m", "tracer", "doctor", *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=180)


def test_can_run_here(checkout):
    done = doctor(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "foreshock can run here" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_as_nobody_it_says_to_be_root(checkout):
    if subprocess.run([*AS_NOBODY, sys.executable, "-c", "import click"], capture_output=True).returncode:
        pytest.skip("nobody can't run this interpreter")
    done = doctor(checkout, before=AS_NOBODY)
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"fix: run as root: sudo {sys.executable} -m tracer doctor" in " ".join(done.stdout.split())
    assert "ok    kernel" in done.stdout and "clock source" in done.stdout


def test_tells_bcc_of_the_systems_python(checkout):
    found = json.loads(doctor(checkout, "--json").stdout)
    (bcc,) = [check for check in found["checks"] if check["name"] == "bcc"]
    version = subprocess.run(
        ["/usr/bin/python3", "-I", "-c", "import bcc; print(bcc.__version__)"], capture_output=True, text=True
    ).stdout.strip()
    assert version in bcc["found"]


def test_leaves_no_program_and_no_map_behind():
    from tracer.kernel.trials import run_trials

    def held() -> Counter[str]:
        # Others of this process may end meanwhile: a loader of an earlier test gives its descriptors back in a thread.
        with os.scandir("/proc/self/fd") as every:
            return Counter(link for one in every if (link := _link(one.path)))

    before = held()
    assert set(run_trials().values()) == {""}
    assert not held() - before


def _link(path: str) -> str:
    with suppress(FileNotFoundError):
        return os.readlink(path)
    return ""
