"""cpustate: the four parts add up to the time; a spinner's time is in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.selftest import Check, Evidence
from tracer.units import duration

_PARTS = ("running_ns", "idle_ns", "softirq_ns", "hardirq_ns")


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the sums of all scenes, and the CPU time that the kernel says the hog used."""
    shares = np.concatenate([_shares(evidence, name) for name in evidence.scenes])
    if not len(shares):
        yield Check.of(False, "no CPU", "at least one")
        return
    low, high = shares.min() * 100, shares.max() * 100
    yield Check.of(low >= 99 and high <= 101, f"parts add up to {low:.2f}–{high:.2f} % of the time", "100 ± 1 %")
    scene = evidence["hog"]
    rows = scene.rows("cpustate", "time")
    row = rows[rows["cpu"] == evidence.places.busy]
    # Interrupts that hit the hog are told apart here, and charged to it by the kernel's accounting of tasks.
    busy_ns = sum(int(row[part].sum()) for part in _PARTS if part != "idle_ns")
    used_ns = scene.told["hog"]["used_ns"]
    yield Check.of(
        0.99 * used_ns <= busy_ns,
        f"CPU {evidence.places.busy} busy for {duration(busy_ns)}",
        f"at least the hog's {duration(used_ns)}",
    )


def _shares(evidence: Evidence, name: str) -> np.ndarray:
    window = evidence[name].windows[("cpustate", "time")]
    total = sum(window.rows[part].astype("f8") for part in _PARTS)
    return np.asarray(total / (window.end_ns - window.start_ns))
