"""oncpu: samples hit the task that had the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tracer.probe import Clock
from tracer.probes import all_probes
from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import STRANGE_PIDS
from tracer.units import percent


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the share and the number of samples on the hog's CPU."""
    if not evidence.host_pids:
        yield Check.skip(STRANGE_PIDS)
        return
    scene = evidence["hog"]
    if scene.told["hog"]["priority"] != "fifo":
        yield Check.skip("no real-time priority here: nothing has a CPU for certain")
        return
    samples = scene.rows("oncpu", "samples")
    samples = samples[samples["cpu"] == evidence.places.busy]
    every = int(samples["weight"].sum())
    hog = int(samples["weight"][samples["pid"] == scene.pids["hog"]].sum())
    # Interrupts over the idle task are the idle task's samples: the truth lies between these two.
    used_ns = scene.told["hog"]["used_ns"]
    least, most = (used_ns / max(busy_ns, 1) for busy_ns in _busy(evidence))
    share = hog / max(every, 1)
    # Few samples hit by chance as well: three standard deviations.
    slack = max(0.1, 3 * math.sqrt(share * (1 - share) / max(every, 1)))
    yield Check.of(
        least - slack <= share <= most + slack,
        f"{percent(share)} of a CPU's samples hit its hog",
        f"{percent(least)} to {percent(most)}, its share by cpustate, ± {slack * 100:.0f}",
    )
    hz = next(hook.hz for hook in all_probes()["oncpu"].hooks if isinstance(hook, Clock))
    due = used_ns / 1e9 * hz
    yield Check.of(abs(hog - due) <= max(0.2 * due, 3), f"{hog} samples of the hog", f"{due:.0f} ± 20 % at {hz} Hz")


def _busy(evidence: Evidence) -> tuple[int, int]:
    """Return how long the hog's CPU was busy, with interrupts and without."""
    rows = evidence["hog"].rows("cpustate", "time")
    rows = rows[rows["cpu"] == evidence.places.busy]
    running_ns = int(rows["running_ns"].sum())
    return running_ns + int(rows["softirq_ns"].sum() + rows["hardirq_ns"].sum()), running_ns
