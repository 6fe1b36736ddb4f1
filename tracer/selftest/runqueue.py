"""runqueue: the wait behind a hog and who held the CPU; the number of waits of a known number of rounds."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import STRANGE_PIDS, counted
from tracer.selftest._scenes import HOG_BURST, PIPES_ROUNDS
from tracer.units import duration


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the victim's longest wait by its own clock, and the rounds' waits by the kernel's context switches."""
    yield _hog(evidence)
    scene = evidence["pipes"]
    waits = counted(scene.rows("runqueue", "wait"))
    most = scene.span(lambda counts: counts.switches).most
    # Every wait ends in a switch; switches to idle end none.
    yield Check.of(
        2 * PIPES_ROUNDS <= waits <= most,
        f"{waits:,} waits in {PIPES_ROUNDS:,} rounds over pipes",
        f"2 each, {2 * PIPES_ROUNDS:,}, to {most:,} (all switches)",
    )


def _hog(evidence: Evidence) -> Check:
    if not evidence.host_pids:
        return Check.skip(STRANGE_PIDS)
    scene = evidence["hog"]
    if scene.told["hog"]["priority"] != "fifo":
        return Check.skip("no real-time priority here: nothing makes a task wait for certain")
    worst = scene.rows("runqueue", "worst")
    worst = worst[worst["pid"] == scene.pids["victim"]]
    late_ns = int(scene.told["victim"]["worst_ns"])
    expected = f"hog, {duration(late_ns)} by the victim's clock, ± 10 %"
    if not len(worst):
        return Check.of(False, "no wait of the victim was told", expected)
    # On a busy node it may have waited for others as well, also before its clock began.
    behind = worst[worst["holder_pid"] == scene.pids["hog"]]
    worst = behind if len(behind) else worst
    longest = worst[int(worst["wait_ns"].argmax())]
    wait_ns, holder = int(longest["wait_ns"]), int(longest["holder_pid"])
    # Its clock is late by all its waits; of a busy node's only that behind the hog is known, by the hog's burst.
    burst_ns = HOG_BURST * 1e9
    right = abs(wait_ns - late_ns) <= 0.1 * late_ns or (abs(wait_ns - burst_ns) <= 0.1 * burst_ns and wait_ns < late_ns)
    passed = right and holder == scene.pids["hog"]
    name = bytes(longest["holder_comm"]).decode(errors="backslashreplace")
    return Check.of(passed, f"waited {duration(wait_ns)} behind {name}", expected)
