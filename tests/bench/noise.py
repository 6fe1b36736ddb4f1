"""The noise that a running foreshock puts on a program that wants its CPUs for itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
from statistics import median

import numpy as np

from .machine import say, workload
from .results import Check, Section, table
from .sides import recording

__all__ = ["measure"]

QUANTUM_NS = 1_000_000
SECONDS = 10
MEAN_TARGET, TAIL_TARGET = 0.1, 0.5  # percent


def measure(rounds: int) -> Section:
    """Compare a fixed work quantum on every CPU with and without all light probes, recorded once a second."""
    steps = _calibrated()
    samples: dict[str, list[list[float]]] = {"mean": [], "p99.9": []}
    for number in range(rounds):
        runs = []
        # Without, with, without: what drifts (clock rate, neighbours of a virtual machine) cancels to first order.
        for agent in (False, True, False):
            with recording(cpu=None) if agent else contextlib.nullcontext():
                runs.append(_quanta(steps))
        for name, figure in (("mean", np.mean), ("p99.9", lambda took: np.quantile(took, 0.999))):
            samples[name].append([float(figure(took)) for took in runs])
        say(f"noise: {number + 1} of {rounds}: " + _latest(samples))
    section = Section("Noise put on others")
    rows = []
    for name, target in (("mean", MEAN_TARGET), ("p99.9", TAIL_TARGET)):
        added = [100 * (on / ((first + second) / 2) - 1) for first, on, second in samples[name]]
        same = [100 * abs(second / first - 1) for first, _, second in samples[name]]
        change, noise = median(added), median(same)
        met = change <= target or change <= noise
        measured = f"{change:+.3f} % (A/A {noise:.3f} %)"
        section.checks.append(Check(f"quantum of 1 ms, {name}", measured, f"≤ +{target} % or A/A", met))
        without = median([value for first, _, second in samples[name] for value in (first, second)])
        rows.append((name, f"{without / 1e3:.2f}", f"{change:+.3f} %", f"{noise:.3f} %", f"≤ +{target} %"))
    section.blocks += [
        f"A loop of the same arithmetic again and again, about 1 ms each time, on every CPU at once for {SECONDS} s: "
        f"without foreshock, with `foreshock record` of all light probes at 1 Hz, and without it again, {rounds} "
        "times. The agent is free to run where the scheduler puts it, which is on one of the loops' CPUs. "
        "“A/A” is the difference between the two runs without it: smaller changes can't be told from nothing.",
        table(("quantum", "without, µs", "with foreshock", "A/A difference", "target"), rows),
    ]
    return section


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


def _latest(samples: dict[str, list[list[float]]]) -> str:
    return "; ".join(
        f"{name} {' '.join(f'{value / 1e3:.2f}' for value in values[-1])} µs" for name, values in samples.items()
    )
