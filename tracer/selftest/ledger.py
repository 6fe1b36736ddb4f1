"""ledger: what the hog ran, and that the victim knows who had its CPU."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.units import duration

_RUN = ("running_ns", "softirq_ns", "hardirq_ns")


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the hog's time by the kernel's clock of it, and who took most of the victim's."""
    scene = evidence["hog"]
    times, taken = scene.rows("ledger", "time"), scene.rows("ledger", "taken")
    hog = times[times["pid"] == scene.pids["hog"]]
    ran_ns, used_ns = sum(int(hog[name].sum()) for name in _RUN), scene.told["hog"]["used_ns"]
    yield Check.of(
        abs(ran_ns - used_ns) <= 0.02 * used_ns,
        f"the hog ran {duration(ran_ns)}",
        f"{duration(used_ns)} by the kernel's clock of it, ± 2 %",
    )
    if scene.told["hog"]["priority"] != "fifo":
        yield Check.skip("no real-time priority here: nothing has a CPU for certain")
        return
    held = taken[(taken["pid"] == scene.pids["victim"]) & (taken["kind"] == b"task")]
    most = held[held["ns"].argmax()] if len(held) else None
    told = f"{duration(int(most['ns']))} taken by process {most['number']}" if most is not None else "nobody named"
    yield Check.of(
        most is not None and int(most["number"]) == scene.pids["hog"],
        f"of the victim's time {told}",
        f"most taken by the hog, process {scene.pids['hog']}",
    )
