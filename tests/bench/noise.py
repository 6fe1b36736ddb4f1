"""The noise that a running foreshock puts on a program that wants its CPUs for itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

from .machine import cpu_seconds, say, workload
from .results import Check, Section, table
from .sides import recording

__all__ = ["measure"]

QUANTUM_NS = 1_000_000
SECONDS = 10
#: What is compared, and by how many percent it may grow.
_FIGURES: dict[str, tuple[Callable[[np.ndarray], float], float]] = {
    "mean": (lambda took: float(np.mean(took)), 0.1),
    "p99.9": (lambda took: float(np.quantile(took, 0.999)), 0.5),
}
#: The start's own work, and the second of accounting after it, are no part of running.
_STARTED_SECONDS = 3
_SLEEPER = """
import sys, time
due = time.monotonic()
while True:
    due += 1
    time.sleep(max(0, due - time.monotonic()))
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        pass
"""


def measure(rounds: int) -> Section:
    """Compare a fixed work quantum on every CPU with and without all light probes, recorded once a second."""
    steps = _calibrated()
    runs: dict[str, list[np.ndarray]] = {side: [] for side in ("without", "foreshock", "again", "sleeper")}
    used: list[float] = []
    for number in range(rounds):
        # Without, with, without: what drifts (clock rate, neighbours of a virtual machine) cancels to first order.
        runs["without"].append(_quanta(steps))
        with recording(cpu=None) as process:
            time.sleep(_STARTED_SECONDS)
            before = cpu_seconds(process.pid)
            runs["foreshock"].append(_quanta(steps))
            used.append((cpu_seconds(process.pid) - before) / SECONDS)
        runs["again"].append(_quanta(steps))
        with _sleeper(used[-1]):
            runs["sleeper"].append(_quanta(steps))
        say(f"noise: {number + 1} of {rounds}: " + _latest(runs))
    section = Section("Noise put on others")
    rows = []
    for name, (figure, target) in _FIGURES.items():
        figures = {side: [figure(took) for took in every] for side, every in runs.items()}
        change, sleeper = (_added(figures, side) for side in ("foreshock", "sleeper"))
        noise = median(
            100 * abs(again / first - 1) for first, again in zip(figures["without"], figures["again"], strict=True)
        )
        met = change <= target or change <= noise
        measured = f"{change:+.3f} % (A/A {noise:.3f} %)"
        section.checks.append(Check(f"quantum of 1 ms, {name}", measured, f"≤ +{target} % or A/A", met))
        without = median(figures["without"] + figures["again"])
        percents = (f"{change:+.3f} %", f"{noise:.3f} %", f"{sleeper:+.3f} %", f"≤ +{target} %")
        rows.append((name, f"{without / 1e3:.2f}", *percents))
    section.blocks += [
        f"A loop of the same arithmetic again and again, about 1 ms each time, on every CPU at once for {SECONDS} s: "
        f"without foreshock, with `foreshock record` of all light probes at 1 Hz, and without it again, {rounds} "
        "times. The agent is free to run where the scheduler puts it, which is on one of the loops' CPUs. "
        "“A/A” is the difference between the two runs without it: smaller changes can't be told from nothing.",
        "“Sleeper” is a program that traces nothing: once a second it computes for as long as foreshock's process did "
        f"({1e3 * median(used):.1f} ms), and sleeps. Where every CPU is taken, one quantum a second is longer by that, "
        f"whoever wakes up: that is one in {len(os.sched_getaffinity(0)) * 1_000_000_000 // QUANTUM_NS}, "
        "and the 99.9th percentile is the longest but one in 1,000.",
        table(("quantum", "without, µs", "with foreshock", "A/A difference", "sleeper", "target"), rows),
    ]
    return section


def _added(figures: dict[str, list[float]], side: str) -> float:
    """Return by how many percent a side's figure is above that of the runs without foreshock around it."""
    runs = zip(figures["without"], figures[side], figures["again"], strict=True)
    return median(100 * (value / ((first + again) / 2) - 1) for first, value, again in runs)


@contextlib.contextmanager
def _sleeper(seconds: float) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", _SLEEPER, str(seconds)])
    try:
        time.sleep(_STARTED_SECONDS)
        yield
    finally:
        process.kill()
        process.wait()


def _calibrated() -> int:
    """Return how many steps take about one quantum on an undisturbed CPU."""
    took = _run(100_000, 200)
    return int(100_000 * QUANTUM_NS / float(np.min(np.concatenate(took))))


def _quanta(steps: int) -> np.ndarray:
    return np.concatenate(_run(steps, SECONDS * 1_000_000_000 // QUANTUM_NS))


def _run(steps: int, count: int) -> list[np.ndarray]:
    processes = [
        subprocess.Popen([workload("quantum"), str(cpu), str(steps), str(count)], stdout=subprocess.PIPE)
        for cpu in sorted(os.sched_getaffinity(0))
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert not any(process.returncode for process in processes)
    return [np.frombuffer(output, dtype="u4") for output in outputs]


def _latest(runs: dict[str, list[np.ndarray]]) -> str:
    return "; ".join(
        f"{name} " + " ".join(f"{side} {figure(every[-1]) / 1e3:.1f}" for side, every in runs.items()) + " µs"
        for name, (figure, _) in _FIGURES.items()
    )
