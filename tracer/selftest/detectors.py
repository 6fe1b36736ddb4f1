"""detectors: settings as the kernel says them."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.kernel.textfiles import number
from tracer.selftest import Check, Evidence

_PANIC = "/proc/sys/kernel/panic"


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the setting that every kernel has, and the taint, which does not change meanwhile."""
    settings = evidence.opening["detectors", "settings"].rows
    told = {bytes(row["name"]): bytes(row["value"]).decode() for row in settings}
    panic = number(_PANIC)
    found = told.get(b"kernel.panic", "not found")
    yield Check.of(found == str(panic), f"{len(told)} settings, kernel.panic {found}", f"{panic} in {_PANIC}")
    counts = evidence.all_rows("detectors", "counts")
    taints = counts["new"][counts["name"] == b"taint"]
    yield Check.of(
        len(taints) == len(evidence.scenes) and not taints.any(),
        f"the kernel's taint read {len(taints)} times, unchanged",
        f"{len(evidence.scenes)} times, unchanged",
    )
