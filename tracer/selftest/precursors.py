"""precursors: OOM kills, by the kernel's own count of them."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.units import many


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the kills that were told by those that the kernel counted: none of either, mostly."""
    if "memory" not in evidence.probes:
        yield Check.skip("the kernel's count of kills is not known: the probe memory does not run")
        return
    counts = evidence.all_rows("precursors", "count")
    kills = int(counts["count"][counts["kind"] == b"oom_kill"].sum())
    counted = int(evidence.all_rows("memory", "effort")["oom_kills"].sum())
    # The two are not read at one moment.
    yield Check.of(abs(kills - counted) <= 1, many(kills, "OOM kill"), f"{counted} ± 1 in /proc/vmstat")
