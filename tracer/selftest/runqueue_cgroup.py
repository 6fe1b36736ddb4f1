"""runqueue_cgroup: the cgroups' waits are all waits."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import counted


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge by the runqueue probe's count of the same time."""
    scene = evidence["pipes"]
    window = scene.windows[("runqueue_cgroup", "wait")]
    waits = counted(window.rows) + window.losses.get("folded", 0)
    every = counted(scene.rows("runqueue", "wait"))
    # The two maps are read one after the other.
    yield Check.of(
        abs(waits - every) <= 20 + every // 100, f"{waits:,} waits in cgroups", f"{every:,} ± 1 %, runqueue's"
    )
