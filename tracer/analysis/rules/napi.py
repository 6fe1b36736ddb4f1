"""Can the CPUs that poll the network devices keep up?"""

from __future__ import annotations

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group
from tracer.analysis.rows import text
from tracer.analysis.summary import Summary
from tracer.units import at_most, count, percent

__all__ = ["napi_polls"]


def napi_polls(summary: Summary) -> Outcome:
    """Judge ``napi.poll`` per CPU and device: polls that use their whole budget."""
    table = summary.table("napi", "poll")
    if table is None:
        return missing("whether network polling keeps up: napi was not recorded")
    groups = {(int(cpu), text(device)): group for (cpu, device), group in table.groups("cpu", "device").items()}
    polls = sum(group.sums["polls"] for group in groups.values())
    if not polls:
        return missing("whether network polling keeps up: no device was polled")
    findings = [_finding(*place, group) for place, group in groups.items() if _stands_out(group)]
    full = sum(group.sums["full"] for group in groups.values()) / polls
    return outcome(findings, "full network polls", percent(full), f"under {percent(thresholds.NAPI_FULL)}")


def _stands_out(group: Group) -> bool:
    polls = group.sums["polls"]
    return polls >= thresholds.NAPI_LEAST_POLLS and group.sums["full"] > thresholds.NAPI_FULL * polls


def _finding(cpu: int, device: str, group: Group) -> Finding:
    polls, full, one = group.sums["polls"], group.sums["full"], group.statistics
    share = full / polls
    gap = f" The longest gap between two polls was {at_most(one.max_ns)}." if one.count else ""
    return Finding(
        rule="napi.full",
        severity=Severity.WARNING,
        subject=f"{device} on CPU {cpu}",
        what=(
            f"{device} on CPU {cpu}: {percent(share)} of {count(polls)} polls used their whole budget: packets arrive "
            f"faster than this CPU takes them (normal: under {percent(thresholds.NAPI_FULL)}).{gap}"
        ),
        who="",
        next="spread the queues over more CPUs (RSS, RPS); look at the device's drops",
        anchor="network-polling",
        value=share,
        threshold=thresholds.NAPI_FULL,
        unit="1",
        values={"cpu": cpu, "device": device, "polls": polls, "full": full, "longest_gap_s": one.max_ns / 1e9},
    )
