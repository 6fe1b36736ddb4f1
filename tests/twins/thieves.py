"""Three who take a rank's time, each as much as is known otherwise: does the ledger say who it was, and how much?

The rank is the slower one of a barrier loop, so that it nearly always wants its CPU: what others had of that, it lost.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from kernel.holding import Holder, on_cpu

from tests.bench.machine import CHECKOUT
from tracer.workloads.hog import Hog

from .node import JOB_CPU, Job, group, job, loop_device, recorder

__all__ = ["THIEVES", "Account", "Thief", "account_of"]

_WORK_MS = (0.5, 50.0)
_SECONDS = 10
#: At the beginning and the end of the recording nobody takes anything.
_MARGIN_S, _ACTIVE_S = 1.0, 6.0
_BURST, _REST = 0.02, 0.08
_QUOTA = 0.6
_TOLERANCE = 0.10


@dataclass(frozen=True)
class Thief:
    """``begin(job)`` takes time from rank 1 and returns how much it was, in ns, as others than foreshock know it."""

    name: str
    injected: str
    truth: str
    cause: str
    whose: Callable[[str], bool]
    begin: Callable[[Job], int]


@dataclass(frozen=True)
class Account:
    """What the ledger says of rank 1: ``ns`` of the thief, beside ``truth_ns``; ``cause`` took most of what it lost."""

    thief: Thief
    ns: int
    truth_ns: int
    cause: str
    most: str

    @property
    def error(self) -> float:
        return self.ns / self.truth_ns - 1

    @property
    def right(self) -> bool:
        """Whether share, verdict and name are."""
        return abs(self.error) <= _TOLERANCE and self.cause == self.thief.cause and self.thief.whose(self.most)


def account_of(thief: Thief, path: Path) -> Account:
    """Let a thief take time from a rank, record that, and return what the ledger says."""
    with ExitStack() as stack:
        own, device = stack.enter_context(group("foreshock")), stack.enter_context(loop_device())
        working = stack.enter_context(job("ranks", device, _WORK_MS, 0.0))
        recording = recorder(path, thief.name, _SECONDS, own, probes="jobs,ledger")
        time.sleep(_MARGIN_S)
        truth_ns = thief.begin(working)
        recording.wait()
        command = [sys.executable, "-m", "tracer", "summary", "--json", str(path)]
        tree = json.loads(subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout)
        (rank,) = (one for one in tree["ledger"] if one["pid"] == working.pids[1])
    ns = sum(round(1e9 * one["seconds"]) for one in rank["taken"] if thief.whose(one["what"]))
    return Account(thief, ns, truth_ns, str(rank["cause"]), rank["taken"][0]["what"])


def _neighbour(working: Job) -> int:
    hog = Hog(JOB_CPU, bursts=round(_ACTIVE_S / (_BURST + _REST)), burst=_BURST, rest=_REST, urgent=False)
    with group("thief") as own, hog:
        own.add(hog.pid)
        hog.go()
        return int(hog.result()["cpu_ns"])


def _softirq(working: Job) -> int:
    took: list[int] = []

    def send() -> None:
        until = time.monotonic() + _ACTIVE_S
        while time.monotonic() < until:
            began = time.monotonic_ns()
            slow.hold_softirq()
            took.append(time.monotonic_ns() - began)

    with Holder(_BURST) as slow:
        on_cpu(JOB_CPU, send, fifo=10).join()
    return round(len(took) * (median(took) - _PAUSE_NS))


def _quota(working: Job) -> int:
    with group("held") as own:
        own.add(working.pids[1])
        before = own.throttled_ns()
        own.quota(_QUOTA)
        time.sleep(_ACTIVE_S)
        own.quota(10.0)
        time.sleep(0.2)
        held = own.throttled_ns() - before
        working.group.add(working.pids[1])
    return held


#: ``hold_softirq`` sleeps so long after each packet.
_PAUSE_NS = 50_000_000

THIEVES = (
    Thief(
        "neighbour",
        "a task of another cgroup wants 20 ms of each 100 ms, on the rank's CPU",
        "its own CPU time",
        "neighbour",
        lambda what: what.startswith("hog (in foreshock-thief-"),
        _neighbour,
    ),
    Thief(
        "softirq",
        "packets whose receipt takes 20 ms each, as softirqs of the rank's CPU",
        "how long each took, by the clock of who sent it, times how many",
        "interrupts",
        lambda what: what.startswith("softirq"),
        _softirq,
    ),
    Thief(
        "quota",
        f"the rank's own cgroup gets a quota of {_QUOTA} CPUs",
        "throttled time in its cpu.stat",
        "quota",
        lambda what: what == "its own quota",
        _quota,
    ),
)
