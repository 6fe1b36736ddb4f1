"""offcpu: a sleeper's time off the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.units import duration


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the sleeper's most frequent stack by its own clock."""
    scene = evidence["sleep"]
    told = scene.told["sleeper"]
    samples = scene.rows("offcpu", "samples")
    samples = samples[samples["tid"] == scene.pids["sleeper"]]
    expected = f"{told['sleeps']}, {duration(told['slept_ns'])} by its clock, ± 2 %"
    if not len(samples):
        yield Check.of(False, "no block of the sleeper was told", expected)
        return
    # Its other stack is the wait for its go, which began before.
    row = samples[int(samples["count"].argmax())]
    blocks, off_ns = int(row["count"]), int(row["weight"])
    yield Check.of(
        blocks == told["sleeps"] and abs(off_ns - told["slept_ns"]) <= 0.02 * told["slept_ns"],
        f"{blocks} sleeps, {duration(off_ns)}",
        expected,
    )
