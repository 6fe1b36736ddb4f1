"""Can the CPUs that poll the network devices keep up?"""

from __future__ import annotations

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group
from tracer.analysis.rows import text
from tracer.analysis.summary import Summary
from tracer.units import at_most, count, duration, percent

__all__ = ["napi_polls"]


def napi_polls(summary: Summary) -> Outcome:
    """Judge ``napi.poll`` per CPU and device: polls that used their whole budget, and how long packets then waited."""
    table = summary.table("napi", "poll")
    if table is None:
        return missing("whether network polling keeps up: napi was not recorded")
    found = table.groups("cpu", "device", "budget").items()
    # An application that busy-polls, or netpoll, asks for little at a time: its full polls say nothing.
    groups = {
        (int(cpu), text(device)): group for (cpu, device, budget), group in found if budget >= thresholds.NAPI_BUDGET
    }
    polls = sum(group.sums["polls"] for group in groups.values())
    if not polls:
        return missing("whether network polling keeps up: no device was polled")
    findings = [_finding(*place, group) for place, group in groups.items() if _stands_out(group)]
    full = sum(group.sums["full"] for group in groups.values()) / polls
    return outcome(findings, "full network polls", percent(full), f"under {percent(thresholds.NAPI_FULL)}")


def _full(group: Group) -> bool:
    polls = group.sums["polls"]
    return polls >= thresholds.NAPI_LEAST_POLLS and group.sums["full"] > thresholds.NAPI_FULL * polls


def _stands_out(group: Group) -> bool:
    return _full(group) or group.statistics.max_ns > thresholds.NAPI_GAP_WORST_NS


def _finding(cpu: int, device: str, group: Group) -> Finding:
    polls, full, one = group.sums["polls"], group.sums["full"], group.statistics
    share, late = full / polls, one.max_ns > thresholds.NAPI_GAP_WORST_NS
    allowed = f"normal: under {percent(thresholds.NAPI_FULL)}, gaps under {duration(thresholds.NAPI_GAP_WORST_NS)}"
    return Finding(
        rule="napi.gap" if late else "napi.full",
        severity=Severity.WARNING,
        subject=f"{device} on CPU {cpu}",
        what=(
            f"{device} on CPU {cpu}: {percent(share)} of {count(polls)} polls used their whole budget; packets left "
            f"behind then waited {at_most(one.max_ns)} for the next poll ({allowed})."
        ),
        who="Something kept that CPU from polling on: see its waits and softirq delays."
        if late
        else "Packets arrive faster than this CPU takes them.",
        next="spread the queues over more CPUs (RSS, RPS); look at the device's drops",
        anchor="network-polling",
        value=one.max_ns / 1e9 if late else share,
        threshold=thresholds.NAPI_GAP_WORST_NS / 1e9 if late else thresholds.NAPI_FULL,
        unit="s" if late else "1",
        values={"cpu": cpu, "device": device, "polls": polls, "full": full, "longest_gap_s": one.max_ns / 1e9},
    )
