"""cpustall: the watchdog's beat is seen; a task that spins in user mode is no stall."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.kernel import cpus
from tracer.kernel.counts import watchdog_period
from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import counted

_OTHERS = (b"softirq", b"hard interrupt", b"interrupts off")


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the feeds by the watchdog's period, and stalls by the spinner, which is none."""
    yield _feeds(evidence)
    scene = evidence["spin"]
    stalls = scene.rows("cpustall", "stalls")
    # Interrupts may hold a CPU up over any task.
    own = [row for row in stalls[stalls["pid"] == scene.pids["hog"]] if not bytes(row["context"]).startswith(_OTHERS)]
    yield Check.of(
        not own, f"{len(own)} stalls by a task that spun for 1.5 s", "0: it spun in user mode, not in the kernel"
    )


def _feeds(evidence: Evidence) -> Check:
    period = watchdog_period()
    if not period:
        return Check.skip("the kernel's watchdog is off: nothing feeds it")
    feeds = counted(evidence.all_rows("cpustall", "feed"))
    beats, watched = evidence.seconds / period, len(set(cpus.online()) - cpus.undisturbed())
    least, most = int(beats) * watched, (int(beats) + 1) * watched
    return Check.of(
        least <= feeds <= most, f"the watchdog was fed {feeds} times in {evidence.seconds:.1f} s", f"{least} to {most}"
    )
