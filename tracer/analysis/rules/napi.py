"""Can the CPUs that poll the network devices keep up?"""

from __future__ import annotations

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group
from tracer.analysis.names import VECTORS, budget_class
from tracer.analysis.rows import text
from tracer.analysis.rules.culprits import who_held
from tracer.analysis.rules.unasked import not_recorded
from tracer.analysis.summary import Summary
from tracer.units import at_most, duration, many, percent

__all__ = ["napi_polls"]

_NORMAL = f"< {percent(thresholds.NAPI_FULL)}, gaps < {duration(thresholds.NAPI_GAP_WORST_NS)}"
_NET_RX = VECTORS.index("NET_RX")


def napi_polls(summary: Summary) -> Outcome:
    """Judge ``napi.poll`` per CPU and device: polls that used their whole budget, and how long packets then waited."""
    table = summary.table("napi", "poll")
    if table is None:
        return not_recorded("whether network polling keeps up", "napi", summary)
    found = table.groups("cpu", "device", "budget").items()
    # An application that busy-polls, or netpoll, asks for little at a time: its full polls say nothing.
    groups = [
        (int(cpu), text(device), group)
        for (cpu, device, budget), group in found
        if group.sums["polls"] and not budget_class(int(budget))
    ]
    if not groups:
        return missing("whether network polling keeps up: no device was polled")
    findings = [_finding(cpu, device, group, summary) for cpu, device, group in groups if _stands_out(group)]
    return outcome(findings, "full network polls", _measured([group for _, _, group in groups]), _NORMAL)


def _measured(groups: list[Group]) -> str:
    """The largest share of those that are judged, and the longest gap of all."""
    enough = [one.sums for one in groups if one.sums["polls"] >= thresholds.NAPI_LEAST_POLLS]
    judged = [sums["full"] / sums["polls"] for sums in enough]
    gaps = [one.statistics.max_ns for one in groups if one.statistics.count]
    share = percent(max(judged)) if judged else "too few polls"
    return f"{share}, gaps {at_most(max(gaps))}" if gaps else f"{share}, no gaps"


def _full(group: Group) -> bool:
    polls = group.sums["polls"]
    return polls >= thresholds.NAPI_LEAST_POLLS and group.sums["full"] > thresholds.NAPI_FULL * polls


def _stands_out(group: Group) -> bool:
    return _full(group) or group.statistics.max_ns > thresholds.NAPI_GAP_WORST_NS


def _finding(cpu: int, device: str, group: Group, summary: Summary) -> Finding:
    polls, full, one = group.sums["polls"], group.sums["full"], group.statistics
    share, late = full / polls, one.max_ns > thresholds.NAPI_GAP_WORST_NS
    held = summary.blame.vectors.get((cpu, _NET_RX))
    kept = who_held(held, "delays") if held else "Something kept that CPU from polling on: see its waits."
    return Finding(
        rule="napi.gap" if late else "napi.full",
        topic="packets left waiting" if late else "full network polls",
        severity=Severity.WARNING,
        subject=f"{device} on CPU {cpu}",
        what=(
            f"{device} on CPU {cpu}: {percent(share)} of {many(polls, 'poll')} used the whole budget; packets left "
            f"behind then waited {at_most(one.max_ns)} for the next poll (normal: {_NORMAL})."
        ),
        who=kept if late else "Packets arrive faster than this CPU takes them.",
        next="spread the queues over more CPUs (RSS, RPS); look at the device's drops",
        anchor="network-polling",
        value=one.max_ns / 1e9 if late else share,
        threshold=thresholds.NAPI_GAP_WORST_NS / 1e9 if late else thresholds.NAPI_FULL,
        unit="s" if late else "1",
        values={"cpu": cpu, "device": device, "polls": polls, "full": full, "longest_gap_s": one.max_ns / 1e9},
    )
