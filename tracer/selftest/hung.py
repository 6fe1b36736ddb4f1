"""hung: uninterruptible sleeps, of which our own waits for grace periods are some."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import counted
from tracer.units import many


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the number of sleeps by those that this process slept itself."""
    if "rcu" not in evidence.probes:
        yield Check.skip("no sleep of our own: the probe rcu does not run")
        return
    blocks = int(evidence.all_rows("hung", "blocks")["blocks"].sum())
    # Every wait sleeps, and one may have been going on at either end.
    own = max(0, counted(evidence.all_rows("rcu", "grace")) - 1)
    yield Check.of(blocks >= own, many(blocks, "uninterruptible sleep"), f"{own} and more, our own waits for RCU")
