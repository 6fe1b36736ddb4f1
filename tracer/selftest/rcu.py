"""rcu: a wait every few seconds, none as long as what the kernel calls a stall."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import counted
from tracer.units import duration, many

_EVERY_SECONDS = 5
_TIMEOUT_SECONDS = 21  # the kernel's default


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge how often a grace period was waited for, and for how long."""
    rows = evidence.all_rows("rcu", "grace")
    if (rows["state"] == b"hung_task_panic").any():
        yield Check.skip("kernel.hung_task_panic is set: nothing is waited for")
        return
    # How long a healthy grace period takes is up to the load; a stall is what the kernel reports as one.
    timeout_ns, waits = _timeout_seconds(evidence) * 1e9, counted(rows)
    mean_ns = int(rows["sum"].sum()) / waits if waits else float(rows["age_ns"].max())
    least = max(0, int(evidence.seconds / (_EVERY_SECONDS + mean_ns / 1e9)) - 1)
    expected = f"{least} and more, below {duration(timeout_ns)}, from where on the kernel reports a stall"
    yield Check.of(waits >= least and mean_ns < timeout_ns, f"{many(waits, 'wait')} of {duration(mean_ns)}", expected)


def _timeout_seconds(evidence: Evidence) -> int:
    settings = evidence.opening.get(("detectors", "settings"))
    rows = settings.rows if settings else np.zeros(0, [("name", "S1"), ("value", "S1")])
    values = rows["value"][rows["name"] == b"rcupdate.rcu_cpu_stall_timeout"]
    return int(values[0]) if len(values) and values[0].isdigit() else _TIMEOUT_SECONDS
