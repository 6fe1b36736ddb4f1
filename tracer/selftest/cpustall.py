"""cpustall: the watchdog's beat is seen; a task that spins in user mode is no stall."""

from __future__ import annotations

from collections.abc import Iterator

from tracer import histogram
from tracer.kernel import cpus
from tracer.kernel.counts import watchdog_period
from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import counted

_SPIN_NS = 1_500_000_000


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the feeds by the watchdog's period, and stalls by the spinner, which is none."""
    yield _feeds(evidence)
    scene = evidence["spin"]
    stalls = scene.rows("cpustall", "stall")
    stalls = stalls[stalls["cpu"] == evidence.places.busy]
    long = sum(histogram.count_above(row["slots"], _SPIN_NS // 2) for row in stalls)
    told = int((scene.rows("cpustall", "stalls")["pid"] == scene.pids["hog"]).sum())
    yield Check.of(
        long + told == 0, f"{long + told} stalls while a task spun for 1.5 s", "0: it spun in user mode, not the kernel"
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
