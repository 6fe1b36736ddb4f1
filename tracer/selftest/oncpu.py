"""oncpu: samples hit the task that had the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.probe import Clock
from tracer.probes import all_probes
from tracer.selftest import Check, Evidence
from tracer.units import percent


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the share and the number of samples on the hog's CPU."""
    scene = evidence["hog"]
    if scene.told["hog"]["priority"] != "fifo":
        yield Check.skip("no real-time priority here: nothing has a CPU for certain")
        return
    samples = scene.rows("oncpu", "samples")
    samples = samples[samples["cpu"] == evidence.places.busy]
    every = int(samples["weight"].sum())
    hog = int(samples["weight"][samples["pid"] == scene.pids["hog"]].sum())
    times = scene.rows("cpustate", "time")
    running_ns = int(times["running_ns"][times["cpu"] == evidence.places.busy].sum())
    share, due = hog / max(every, 1), scene.told["hog"]["cpu_ns"] / max(running_ns, 1)
    yield Check.of(
        abs(share - due) <= 0.1,
        f"{percent(share)} of a CPU's samples hit its hog",
        f"{percent(due)}, its share by cpustate, ± 10",
    )
    hz = next(hook.hz for hook in all_probes()["oncpu"].hooks if isinstance(hook, Clock))
    due = scene.told["hog"]["cpu_ns"] / 1e9 * hz
    yield Check.of(abs(hog - due) <= max(0.2 * due, 3), f"{hog} samples of the hog", f"{due:.0f} ± 20 % at {hz} Hz")
