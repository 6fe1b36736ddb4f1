"""How much of what rests on stacks has none, because the kernel's tables for them were full."""

from __future__ import annotations

from typing import NamedTuple

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Severity
from tracer.analysis.stacks import Stacks
from tracer.analysis.summary import Summary
from tracer.units import many, percent

__all__ = ["Stackless", "lost_stacks", "stackless"]

#: What lacks stacks, and what is counted one by one.
_WORDS = {"oncpu": ("samples have", "sample"), "offcpu": ("off-CPU time has", "block")}


class Stackless(NamedTuple):
    """A share that is over the threshold, by what it is of, and the sentence that says so."""

    reason: str
    share: float
    told: str


def stackless(summary: Summary, probe: str) -> list[Stackless]:
    """Return what a probe's stacks lack: those that were lost, and what was not counted at all; nothing if little.

    Stacks are also taken for blocks that turn out too short to count: of lost ones the weight counts, not the number.
    """
    stacks, lost = summary.stacks.get(probe), summary.losses.reasons.get(probe, {})
    if stacks is None or probe not in _WORDS:
        return []
    collided, full = (lost.get(reason, 0) >= thresholds.LOSSES_LEAST for reason in ("collided", "full"))
    weight, one = _WORDS[probe]
    counted = stacks.total if probe == "oncpu" else max(stacks.blocks, 0)  # a hostile recording has negative ones
    found = []
    if collided and (share := _without(stacks)) > thresholds.LOSSES:
        told = f"{percent(share)} of the {weight} no stack or only a part of one: the table of stacks was full"
        found.append(Stackless("collided", share, told))
    if full and (share := lost["full"] / (lost["full"] + counted)) > thresholds.LOSSES:
        # Recordings of before don't say how many blocks there were.
        part = f", {percent(share)} of them," if counted else ""
        told = f"{many(lost['full'], one)}{part} are not counted: the table for them was full"
        found.append(Stackless("full", share, told))
    return found


def lost_stacks(summary: Summary) -> list[Finding]:
    """Return a caveat where samples or time off the CPU lack their stacks, or are missing."""
    lacking = {probe: some for probe in _WORDS if (some := stackless(summary, probe))}
    if not lacking:
        return []
    worst = {probe: max(one.share for one in some) for probe, some in lacking.items()}
    subject = max(worst, key=lambda probe: worst[probe])
    told = "; ".join(one.told for some in lacking.values() for one in some)
    return [
        Finding(
            rule="quality.stacks",
            topic="lost stacks",
            severity=Severity.NOTE,
            subject=subject,
            what=f"Stacks are missing: {told} (normal: < {percent(thresholds.LOSSES)}).",
            who="Functions and stacks weigh less here than they did.",
            next="a shorter --interval, or fewer tasks (--pid, --cgroup)",
            anchor="losses",
            value=worst[subject],
            threshold=thresholds.LOSSES,
            unit="1",
            values={probe: {one.reason: one.share for one in some} for probe, some in lacking.items()},
        )
    ]


def _without(stacks: Stacks) -> float:
    return stacks.lost / stacks.total if stacks.total else 0.0
