"""rcu: one short wait every few seconds."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import counted
from tracer.units import duration, many

_EVERY_SECONDS = 5
_LONGEST_NS = 3_000_000_000  # a busy node's; the kernel reports 21 s


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge how often a grace period was waited for, and for how long."""
    rows = evidence.all_rows("rcu", "grace")
    if (rows["state"] == b"hung_task_panic").any():
        yield Check.skip("kernel.hung_task_panic is set: nothing is waited for")
        return
    waits, least = counted(rows), max(0, int(evidence.seconds / _EVERY_SECONDS) - 1)
    mean_ns = int(rows["sum"].sum()) / waits if waits else 0
    passed = waits >= least and mean_ns < _LONGEST_NS
    expected = f"{least} and more, below {duration(_LONGEST_NS)}"
    yield Check.of(passed, f"{many(waits, 'wait')} of {duration(mean_ns)}", expected)
