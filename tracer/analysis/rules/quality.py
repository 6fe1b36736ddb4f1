"""How far can the other answers be trusted: losses, late or missing intervals, pauses, the tracer's own cost."""

from __future__ import annotations

from tracer.analysis import thresholds
from tracer.analysis.cost import own_cost
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.summary import Summary
from tracer.units import count, duration, percent

__all__ = ["intervals", "losses", "own_use"]

# Counted, but not told one by one: nothing is missing from any histogram. A device that is new has no difference yet.
_HARMLESS = frozenset({"suppressed", "appeared"})


def losses(summary: Summary) -> Outcome:
    """Judge each probe's losses against what it counted."""
    found: list[Finding] = []
    for probe, reasons in sorted(summary.losses.reasons.items()):
        lost = {reason: number for reason, number in reasons.items() if number and reason not in _HARMLESS}
        counted, total = summary.counted(probe), sum(lost.values())
        share = total / (counted + total) if counted else 0.0
        if share > thresholds.LOSSES:
            found.append(_loss(probe, lost, counted, share))
    measured = summary.losses.measured
    if not measured:
        return missing("losses: no probe says what it misses")
    return outcome(found, f"losses: under {percent(thresholds.LOSSES)} of every probe's events")


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
    return outcome(findings, f"all {count(seen.count)} intervals were read in time")


def own_use(summary: Summary) -> Outcome:
    """Judge the tracer's own cost."""
    cost = own_cost(summary)
    if cost is None:
        return missing("the tracer's own cost: not measured")
    share = cost.cpu_share
    normal_part = f"normal: under {percent(thresholds.OWN_CPU)} of one CPU"
    if not share > thresholds.OWN_CPU:
        return outcome([], f"the tracer itself used {percent(share)} of one CPU ({normal_part})")
    finding = _data("cost", f"The tracer itself used {percent(share)} of one CPU ({normal_part}).", "", share)
    return Outcome(findings=(finding,))


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
        threshold=thresholds.OWN_CPU if kind == "cost" else 1.0,
        unit="1",
    )
