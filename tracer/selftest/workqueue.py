"""workqueue: whatever is begun ends."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import counted


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the works that ended by those that began: the kernel always has some to do."""
    windows = [scene.windows["workqueue", "delay"] for scene in evidence.scenes.values()]
    # Barriers of flushes begin without having been queued.
    unqueued = sum(window.losses.get("unqueued", 0) for window in windows)
    begun = counted(evidence.all_rows("workqueue", "delay")) + unqueued
    ended = counted(evidence.all_rows("workqueue", "run"))
    # A handful is at work at either end, on each CPU; a kernel hides some events.
    slack = 4 * evidence.cpu_count + evidence.lost("workqueue") + begun // 100
    yield Check.of(
        begun > 0 and abs(begun - ended) <= slack, f"{ended:,} works ended", f"{begun:,} began ± {slack} under way"
    )
