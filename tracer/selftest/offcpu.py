"""offcpu: a sleeper's time off the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import STRANGE_PIDS
from tracer.units import duration


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the sleeper's most frequent stack by its own clocks, of time and of CPU time."""
    if not evidence.host_pids:
        yield Check.skip(STRANGE_PIDS)
        return
    scene = evidence["sleep"]
    told = scene.told["sleeper"]
    # On a slow machine the way into a sleep and out of it takes a few percent of it.
    sleeps, slept_ns = told["sleeps"], told["slept_ns"] - told["cpu_ns"]
    samples = scene.rows("offcpu", "samples")
    samples = samples[samples["tid"] == scene.pids["sleeper"]]
    # A sleep whose beginning or end the kernel hides from every program is not counted, nor is its time.
    unseen = scene.windows[("cpustate", "check")].losses.get("unseen", 0)
    hidden = f", {unseen} hidden" if unseen else ""
    expected = f"{sleeps}{hidden}, {duration(slept_ns)} by its clocks, ± 2 %"
    if not len(samples):
        yield Check.of(False, "no block of the sleeper was told", expected)
        return
    # Its other stack is the wait for its go, which began before. One stack may have been ended by several wakers.
    rows = samples[samples["stack"] == samples["stack"][samples["count"].argmax()]]
    blocks, off_ns = int(rows["count"].sum()), int(rows["weight"].sum())
    right_ns = slept_ns * blocks / sleeps
    yield Check.of(
        sleeps - unseen <= blocks <= sleeps and abs(off_ns - right_ns) <= 0.02 * right_ns,
        f"{blocks} sleeps, {duration(off_ns)}",
        expected,
    )
