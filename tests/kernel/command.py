"""The command line as a user has it: a process of its own, and how it has to fail."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tracer

__all__ = ["AS_NOBODY", "CHECKOUT", "FORESHOCK", "assert_fails", "children", "environment", "foreshock", "leftovers"]

CHECKOUT = Path(tracer.__file__).parent.parent
FORESHOCK = (sys.executable, "-m", "tracer")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"} | more


def foreshock(*arguments: str, before: Sequence[str] = (), **more: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end. ``before`` is a command that runs it; the rest are environment variables."""
    command = [*before, *FORESHOCK, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment(**more), timeout=90)


def children() -> list[int]:
    """Return the processes that this one has started and not seen the end of."""
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def leftovers() -> set[str]:
    """Return what a test may have left behind: processes, mounts in the folder of this run, temporary folders."""
    temporary = Path(tempfile.gettempdir())
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    mounted = [mount for mount in mounts if Path(mount).is_relative_to(temporary.parent)]
    return {*map(str, children()), *mounted, *map(str, temporary.glob("foreshock-*"))}


def assert_fails(done: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    """One line that says what happened, one what to do, and the documented exit code."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    error, hint = done.stderr.splitlines()
    assert error.startswith("foreshock: error: ") and hint.startswith("hint: ")
    for words in said:
        assert words in done.stderr
