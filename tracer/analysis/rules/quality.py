"""How far can the other answers be trusted: losses, late or missing intervals, pauses, the tracer's own cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tracer.analysis import thresholds
from tracer.analysis.cost import own_cost
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.losses import missed
from tracer.analysis.rules.nameless import lost_records
from tracer.analysis.rules.stackless import lost_stacks
from tracer.analysis.summary import Summary
from tracer.units import count, duration, many, percent

__all__ = ["intervals", "losses", "own_use", "unseen"]


def losses(summary: Summary) -> Outcome:
    """Judge each probe's losses against what it counted; of records that only give names any is too many.

    Lost stacks are judged by what weighs without them.
    """
    if not summary.losses.measured:
        return missing("losses: no probe says what it misses")
    shares = {probe: _share(summary, probe) for probe in sorted(summary.losses.measured)}
    lost = {probe: _lost(summary, probe) for probe in shares}
    totals = {probe: sum(reasons.values()) for probe, reasons in lost.items()}
    enough = [probe for probe in shares if totals[probe] >= thresholds.LOSSES_LEAST]
    over = [probe for probe in enough if shares[probe] > thresholds.LOSSES]
    allowed = f"< {percent(thresholds.LOSSES)} or {thresholds.LOSSES_LEAST} events"
    details = [*lost_records(summary), *lost_stacks(summary)]
    if not over:
        return outcome(details, "lost events", _measured([shares[probe] for probe in enough], totals), allowed)
    told = [f"{probe} {percent(shares[probe])} ({_told(lost[probe])})" for probe in over]
    worst = max(over, key=lambda probe: shares[probe])
    finding = Finding(
        rule="quality.losses",
        topic="lost events",
        severity=Severity.NOTE,
        subject=worst,
        what=f"Events are missing: {', '.join(told)} (normal: {allowed}).",
        who="The numbers of these probes are lower bounds.",
        next="the list of losses says what each reason means",
        anchor="losses",
        value=shares[worst],
        threshold=thresholds.LOSSES,
        unit="1",
        values={probe: {"share": shares[probe], **lost[probe]} for probe in over},
    )
    return Outcome(findings=(finding, *details))


def _measured(judged: Sequence[float], totals: Mapping[str, int]) -> str:
    """The largest share of the probes that are judged; where only few events are missing, how many at most."""
    few = max(totals.values())
    if judged:
        return f"{percent(max(judged))} of a probe's events"
    return f"{many(few, 'event')} of a probe" if few else "none"


def _told(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count(number)}" for reason, number in reasons.items())


def unseen(summary: Summary) -> Outcome:
    """Judge whether the kernel showed the programs what it did: its own count of context switches against theirs."""
    table = summary.table("cpustate", "check")
    made = [int(group.gauges["made"]) for group in table.groups().values() if "made" in group.gauges] if table else []
    if not made:
        return missing("whether the kernel shows every context switch: its own count was not recorded")
    lost = summary.losses.reasons.get("cpustate", {}).get("unseen", 0)
    share = lost / max(made[0], 1)
    if share <= thresholds.UNSEEN or lost < thresholds.LOSSES_LEAST:
        few = percent(share) if share <= thresholds.UNSEEN else f"{count(lost)} of {count(made[0])}"
        allowed = f"under {percent(thresholds.UNSEEN)} or {thresholds.LOSSES_LEAST}"
        return outcome([], "switches not shown", few, allowed)
    what = (
        f"The kernel showed {count(lost)} of {count(made[0])} context switches to no program ({percent(share)}; "
        f"normal: under {percent(thresholds.UNSEEN)})."
    )
    return Outcome(findings=(_data("unseen", what, "Counts of all kernel probes are lower bounds.", share),))


def intervals(summary: Summary) -> Outcome:
    """Judge the intervals themselves: pauses, late reads, gaps."""
    seen = summary.intervals
    findings = []
    usual = duration(seen.typical_ns)
    if seen.paused:
        longest = duration(seen.longest_pause_ns)
        findings.append(
            _data(
                "paused",
                f"The node or its virtual machine stood still: {count(seen.paused)} of {many(seen.count, 'interval')} "
                f"took up to {longest} instead of {usual} on every table, with too few events for that time.",
                "Latencies of these intervals are left out: they would measure the pause.",
                seen.longest_pause_ns / max(seen.typical_ns, 1),
            )
        )
    if seen.gaps:
        findings.append(
            _data(
                "gaps",
                f"{many(seen.gaps, 'gap')} between intervals, {duration(seen.gap_ns)} in all: nobody saw them "
                "(normal: none).",
                "",
                seen.gap_ns / max(seen.typical_ns, 1),
            )
        )
    if unkept := summary.unkept():
        tables = ", ".join(f"{table} {count(rows)}" for table, rows in unkept.items())
        findings.append(_data("unkept", f"Rows left out here: {tables}: too many series (normal: none).", "", 1.0))
    if summary.refused:
        findings.append(_refused(summary))
    if seen.late > 1 and seen.late > seen.count / 100:
        findings.append(
            _data(
                "late",
                f"{count(seen.late)} of {many(seen.count, 'interval')} were read late, after over 1.5 times {usual} "
                "(normal: 1 %).",
                "The tracer itself did not get a CPU in time; counts stay right, times of single intervals blur.",
                seen.late / seen.count * 100,
            )
        )
    in_time = f"all {count(seen.count)} read in time"
    if seen.late:
        in_time = f"{count(seen.late)} of {count(seen.count)} read late"
    return outcome(findings, "intervals", in_time, "1, or 1 %, late")


def own_use(summary: Summary) -> Outcome:
    """Judge the tracer's own cost."""
    cost = own_cost(summary)
    share = cost.cpu_share if cost else math.nan
    if cost is None or math.isnan(share):
        return missing("foreshock's own cost: not measured")
    allowed = f"under {percent(thresholds.OWN_CPU)} of one CPU"
    if not share > thresholds.OWN_CPU:
        return outcome([], "foreshock's own cost", f"{percent(share)} of one CPU", allowed)
    finding = Finding(
        rule="quality.cost",
        topic="foreshock's own cost",
        severity=Severity.NOTE,
        subject="data",
        what=(
            f"foreshock itself used {percent(share)} of one CPU: its process {percent(cost.agent_share)}, its kernel "
            f"programs {percent(cost.program_share)} (normal: {allowed})."
        ),
        who="",
        next="fewer probes (--probes), fewer CPUs (--cpus), a longer --interval",
        anchor="own-cost",
        value=share,
        threshold=thresholds.OWN_CPU,
        unit="1",
    )
    return Outcome(findings=(finding,))


def _lost(summary: Summary, probe: str) -> dict[str, int]:
    reasons = missed(probe, summary.losses.reasons[probe])
    # Switches that no program saw are judged apart, against the kernel's own count.
    return {reason: number for reason, number in reasons.items() if (probe, reason) != ("cpustate", "unseen")}


def _counted(summary: Summary, probe: str) -> int:
    """Return how many of the events that ``probe`` may lose it counted: polls not gaps, delays not runs."""
    if probe == "napi" and (polls := summary.table("napi", "poll")):
        return polls.total().sums["polls"]
    if probe == "softirq" and (delays := summary.table("softirq", "delay")):
        return delays.total().statistics.count
    if probe == "ledger" and (times := summary.table("ledger", "time")):
        return times.total().sums["waits"]
    return summary.counted(probe)


def _share(summary: Summary, probe: str) -> float:
    """Return the share of its events that a probe lost; 0 for probes without events, such as polled counters."""
    lost, counted = sum(_lost(summary, probe).values()), _counted(summary, probe)
    return lost / (counted + lost) if counted else 0.0


def _refused(summary: Summary) -> Finding:
    kinds = [f"{probe}.{table}: {why}" for (probe, table), why in summary.refused]
    more = f"; and {count(len(kinds) - 4)} more" if len(kinds) > 4 else ""
    windows = sum(summary.refused.values())
    shown = f"{'; '.join(kinds[:4])}{more}"
    what = f"{many(windows, 'window')} can't be read as foreshock's tables ({shown}; normal: none)."
    return _data("refused", what, "They are left out, everything else is shown.", float(windows))


def _data(kind: str, what: str, who: str, value: float) -> Finding:
    return Finding(
        rule=f"quality.{kind}",
        topic=f"{kind} data",
        severity=Severity.NOTE,
        subject="data",
        what=what,
        who=who,
        next="none needed if this was expected",
        anchor="data-quality",
        value=value,
        threshold=1.0,
        unit="1",
    )
