"""memory: the node's size, and that what is left is part of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.units import memory


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the total by the C library's word, and the rest by the total."""
    rows = evidence.all_rows("memory", "info")
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    right = len(rows) > 0 and bool((rows["total"] == total).all())
    yield Check.of(right, f"{memory(int(rows['total'][0])) if len(rows) else 'nothing'} of memory", memory(total))
    within = bool(((rows["available"] > 0) & (rows["available"] <= rows["total"])).all())
    least = memory(int(rows["available"].min())) if len(rows) else "nothing"
    yield Check.of(within, f"{least} available at the least", "more than none, and no more than all")
