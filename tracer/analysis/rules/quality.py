"""How far can the other answers be trusted: losses, late or missing intervals, pauses, the tracer's own cost."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.analysis import thresholds
from tracer.analysis.cost import own_cost
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.summary import Summary
from tracer.units import count, duration, percent

__all__ = ["intervals", "losses", "own_use", "unseen"]

# Counted, but not told one by one: nothing is missing from any histogram. A device that is new has no difference yet.
_HARMLESS = frozenset({"suppressed", "appeared"})


# Of these probes every event is counted, some of them under "other".
_FOLDED_IS_COUNTED = frozenset({"hardirq", "napi"})


def losses(summary: Summary) -> Outcome:
    """Judge each probe's losses against what it counted."""
    found: list[Finding] = []
    for probe, reasons in sorted(summary.losses.reasons.items()):
        share = _share(summary, probe)
        lost = _lost(probe, reasons)
        if share > thresholds.LOSSES and sum(lost.values()) >= thresholds.LOSSES_LEAST:
            found.append(_loss(probe, lost, _counted(summary, probe), share))
    if not summary.losses.measured:
        return missing("losses: no probe says what it misses")
    worst = percent(max((_share(summary, probe) for probe in summary.losses.measured), default=0.0))
    allowed = f"< {percent(thresholds.LOSSES)} or {thresholds.LOSSES_LEAST} events"
    return outcome(found, "lost events", f"{worst} of a probe's events", allowed)


def unseen(summary: Summary) -> Outcome:
    """Judge whether the kernel showed the programs what it did: its own count of context switches against theirs."""
    table = summary.table("cpustate", "check")
    made = [int(group.gauges["made"]) for group in table.groups().values() if "made" in group.gauges] if table else []
    if not made:
        return Outcome()
    lost = summary.losses.reasons.get("cpustate", {}).get("unseen", 0)
    share = lost / max(made[0], 1)
    if share <= thresholds.UNSEEN or lost < thresholds.LOSSES_LEAST:
        return Outcome()
    what = (
        f"The kernel did not show {count(lost)} of {count(made[0])} context switches to any program ({percent(share)}; "
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
                f"The node or its virtual machine stood still: {count(seen.paused)} of {count(seen.count)} intervals "
                f"took up to {longest} instead of {usual} on every table, with too few events for that time.",
                "Latencies of these intervals are left out: they would measure the pause.",
                seen.longest_pause_ns / max(seen.typical_ns, 1),
            )
        )
    if seen.gaps:
        findings.append(
            _data(
                "gaps",
                f"{count(seen.gaps)} gaps, {duration(seen.gap_ns)} in all, lie between intervals and were not seen "
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
                f"{count(seen.late)} of {count(seen.count)} intervals were read late, after over 1.5 times {usual} "
                "(normal: 1 %).",
                "The tracer itself did not get a CPU in time; counts stay right, times of single intervals blur.",
                seen.late / seen.count * 100,
            )
        )
    return outcome(findings, "intervals", f"all {count(seen.count)} read in time", "1 % late")


def own_use(summary: Summary) -> Outcome:
    """Judge the tracer's own cost."""
    cost = own_cost(summary)
    if cost is None:
        return missing("the tracer's own cost: not measured")
    share = cost.cpu_share
    allowed = f"under {percent(thresholds.OWN_CPU)} of one CPU"
    if not share > thresholds.OWN_CPU:
        return outcome([], "foreshock's own cost", f"{percent(share)} of one CPU", allowed)
    finding = Finding(
        rule="quality.cost",
        severity=Severity.NOTE,
        subject="data",
        what=(
            f"The tracer itself used {percent(share)} of one CPU: its process {percent(cost.agent_share)}, its kernel "
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


def _lost(probe: str, reasons: Mapping[str, int]) -> dict[str, int]:
    harmless = _HARMLESS | {"folded"} if probe in _FOLDED_IS_COUNTED else _HARMLESS
    return {reason: number for reason, number in reasons.items() if number and reason not in harmless}


def _counted(summary: Summary, probe: str) -> int:
    """Return how many of the events that ``probe`` may lose it counted: polls not gaps, delays not runs."""
    if probe == "napi" and (polls := summary.table("napi", "poll")):
        return polls.total().sums["polls"]
    if probe == "softirq" and (delays := summary.table("softirq", "delay")):
        return delays.total().statistics.count
    return summary.counted(probe)


def _share(summary: Summary, probe: str) -> float:
    """Return the share of its events that a probe lost; 0 for probes without events, such as polled counters."""
    lost, counted = sum(_lost(probe, summary.losses.reasons[probe]).values()), _counted(summary, probe)
    return lost / (counted + lost) if counted else 0.0


def _loss(probe: str, lost: dict[str, int], counted: int, share: float) -> Finding:
    reasons = ", ".join(f"{reason} {count(number)}" for reason, number in lost.items())
    return Finding(
        rule="quality.losses",
        severity=Severity.NOTE,
        subject=probe,
        what=(
            f"{probe}: {percent(share)} of its events are missing ({reasons}; {count(counted)} counted; normal: under "
            f"{percent(thresholds.LOSSES)})."
        ),
        who="Its numbers are a lower bound.",
        next="docs/reading.md says what each reason means",
        anchor="losses",
        value=share,
        threshold=thresholds.LOSSES,
        unit="1",
        values={"probe": probe, **lost},
    )


def _refused(summary: Summary) -> Finding:
    kinds = [f"{probe}.{table}: {why}" for (probe, table), why in summary.refused]
    more = f"; and {count(len(kinds) - 4)} more" if len(kinds) > 4 else ""
    windows = sum(summary.refused.values())
    what = f"{count(windows)} windows are no foreshock tables ({'; '.join(kinds[:4])}{more}; normal: none)."
    return _data("refused", what, "They are left out, everything else is shown.", float(windows))


def _data(kind: str, what: str, who: str, value: float) -> Finding:
    return Finding(
        rule=f"quality.{kind}",
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
