"""``foreshock agent`` in a process of its own, with a rule of the tests' own beside the others, and what it told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from kernel.command import CHECKOUT, environment

from tracer.kernel.helper import NAME

__all__ = ["Heard", "Watching", "helper", "sentinels"]

#: Runs the verb with one more rule: each stall is a subject of its own, so that every one of them is told.
_PROGRAM = """
import sys
from tracer.alerts.alert import Condition, Culprit, Severity, Subject
from tracer.alerts.rule import Rule
from tracer.alerts import rules

def judge(view):
    for row in view.rows("cpustall", "stalls"):
        stack = tuple(view.symbol(address)[0] for address in row["stack"].tolist() if address)
        yield Condition(
            Subject("cpu", f"{row['cpu']} since {row['since_ns']}"), Severity.PAGE, "a stall", int(row["since_ns"]),
            {"event_ns": float(row["time_ns"])}, Culprit(f"{row['comm'].decode()}[{row['pid']}]", "", stack),
        )

needs = ("cpustall", "stalls"), ("cpustall", "open")
every = {**rules.rules(), "test-stall": Rule("test-stall", "", "", "", judge, needs, fast=True, keep_ns=0)}
rules.rules = lambda: every
from tracer.commands import main
main(sys.argv[1:])
"""

#: Reads what the agent tells and notes when, in a process that is at real-time priority on a CPU that is not stuck.
_READER = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
left = b""
while data := os.read(0, 1 << 16):
    now = time.monotonic_ns()
    *lines, left = (left + data).split(b"\\n")
    os.write(1, b"".join(b"%d %s\\n" % (now, line) for line in lines))
"""


class Heard:
    """What a process writes to its standard output, line by line, with the time at which it came."""

    def __init__(self, path: Path, command: Sequence[str], notes: TextIO, *, own_group: bool = False) -> None:
        self._path = path
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=notes,
            cwd=CHECKOUT,
            env=environment(COLUMNS="1000"),  # each fact is a line
            start_new_session=own_group,
        )
        assert self.process.stdout is not None
        with self.process.stdout as output, path.open("w") as file:
            self.reader = subprocess.Popen([sys.executable, "-c", _READER], stdin=output, stdout=file)

    @property
    def lines(self) -> list[tuple[int, str]]:
        """The lines so far, each with its time (CLOCK_MONOTONIC, ns)."""
        found = [line.split(" ", 1) for line in self._path.read_text().splitlines()]
        return [(int(when), words) for when, words in found]

    @property
    def alerts(self) -> list[tuple[int, dict[str, Any]]]:
        """The alerts of the tests' own rule among them."""
        told = [(when, json.loads(words)) for when, words in self.lines if words.startswith("{")]
        return [(when, alert) for when, alert in told if alert.get("rule") == "test-stall"]

    def keep_off(self, cpu: int) -> None:
        """Have nobody who listens live on ``cpu``: neither the reader, nor this thread."""
        others = set(range(os.cpu_count() or 1)) - {cpu}
        for pid in (0, self.reader.pid):
            os.sched_setaffinity(pid, others)

    def close(self) -> None:
        """End the process in good order, or else at all."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(15)
        finally:
            self.process.kill()
            self.process.wait()
            self.reader.wait(20)


class Watching(Heard):
    """An agent that tells JSON lines to a pipe, ready when the ``with`` block begins.

    ``before`` is a command that runs it; with ``own_group`` it leads a process group.
    """

    def __init__(self, folder: Path, *options: str, before: Sequence[str] = (), own_group: bool = False) -> None:
        self._folder = folder
        command = [*before, sys.executable, "-c", _PROGRAM, "agent", "--state", str(folder / "state"), *options]
        command += [] if "--sink" in options else ["--sink", "json:-"]
        with (folder / "notes").open("w") as notes:
            super().__init__(folder / "words", command, notes, own_group=own_group)

    def __enter__(self) -> Watching:
        # The state is written after the first interval.
        try:
            self.wait(lambda: (self._folder / "state").exists(), 60)
        except BaseException:
            self.close()  # nobody else will: the block does not begin
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def notes(self) -> str:
        """What the agent said on standard error."""
        return (self._folder / "notes").read_text()

    def wait(self, until: Callable[[], object], seconds: float = 30) -> None:
        """Wait until something holds. Raises AssertionError when it doesn't in time, or the agent has ended."""
        deadline = time.monotonic() + seconds
        while not until():
            assert self.process.poll() is None, self.notes
            assert time.monotonic() < deadline, self.notes
            time.sleep(0.02)


def sentinels(agent: int) -> dict[int, int]:
    """Return the sentinels of an agent, pid by CPU: the children that have its memory and its name."""
    own = _name(agent)
    return {next(iter(os.sched_getaffinity(pid))): pid for pid in _forked(agent) if _name(pid) == own}


def helper(agent: int) -> int:
    """Return the process that keeps privileges for ``agent``, or for a trace."""
    (found,) = (pid for pid in _forked(agent) if _name(pid) == NAME)
    return found


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")


def _forked(agent: int) -> Iterator[int]:
    own = Path(f"/proc/{agent}/cmdline").read_bytes()
    for pid in Path(f"/proc/{agent}/task/{agent}/children").read_text().split():
        if Path(f"/proc/{pid}/cmdline").read_bytes() == own:
            yield int(pid)
