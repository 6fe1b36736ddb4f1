"""runqueue_cgroup: the cgroups' waits are all waits."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import counted
from tracer.selftest._scenes import PIPES_ROUNDS


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge all cgroups' waits together as those of the runqueue probe are judged."""
    scene = evidence["pipes"]
    window = scene.windows[("runqueue_cgroup", "wait")]
    waits = counted(window.rows) + window.losses.get("folded", 0)
    most = scene.span(lambda counts: counts.switches).most
    yield Check.of(
        2 * PIPES_ROUNDS <= waits <= most,
        f"{waits:,} waits in {len(window.rows)} cgroups",
        f"{2 * PIPES_ROUNDS:,} to {most:,} (all switches)",
    )
