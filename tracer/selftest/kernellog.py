"""kernellog: the log can be read, without a gap."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.units import many


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge that the log was read every time; what is in it is the kernel's business."""
    windows = [scene.windows["kernellog", "lines"] for scene in evidence.scenes.values()]
    unread = sum(window.losses["unread"] for window in windows)
    lost = sum(window.losses["lost"] for window in windows)
    lines = many(sum(int(window.rows["count"].sum()) for window in windows), "line")
    read = f"read {len(windows) - unread} of {len(windows)} times"
    yield Check.of(not unread, f"{lines}, {read}, {lost} overwritten before", f"read {len(windows)} times")
