"""jobs: every process that is told was there; their environments could be asked for."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.units import many


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge that environments came when they were asked for; whose jobs run here is the node's business."""
    windows = [
        evidence.opening["jobs", "members"],
        *(one.windows["jobs", "members"] for one in evidence.scenes.values()),
    ]
    unread = sum(window.losses["unread"] for window in windows)
    members = many(sum(len(window.rows) for window in windows), "member")
    yield Check.of(not unread, f"{members} of jobs or containers, {unread} environments unread", "all of them read")
