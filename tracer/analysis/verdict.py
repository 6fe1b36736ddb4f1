"""The first thing anybody wants to know: what stands out, or that nothing does, and what was not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracer.analysis.finding import Finding, Normal, Outcome, Severity
from tracer.analysis.rules.cpu import cpu_time
from tracer.analysis.rules.devices import network_devices, rdma_ports
from tracer.analysis.rules.hardirq import hard_interrupts
from tracer.analysis.rules.ledger import stolen_time
from tracer.analysis.rules.napi import napi_polls
from tracer.analysis.rules.quality import intervals, losses, own_use, unseen
from tracer.analysis.rules.runqueue import run_queue
from tracer.analysis.rules.softirq import softirq_delay, softirq_run
from tracer.analysis.rules.stalls import stalls, watchdog_feed
from tracer.analysis.summary import Summary
from tracer.units import duration, many

__all__ = ["RULES", "Verdict", "judge"]

RULES: tuple[Callable[[Summary], Outcome], ...] = (
    stalls,
    watchdog_feed,
    run_queue,
    softirq_delay,
    softirq_run,
    hard_interrupts,
    napi_polls,
    cpu_time,
    stolen_time,
    network_devices,
    rdma_ports,
    losses,
    unseen,
    intervals,
    own_use,
)


@dataclass(frozen=True)
class Verdict:
    """All rules' answers. Findings are ordered: worst severity first, then by how far beyond the threshold.

    Attributes:
        headline: one sentence, without names from the node; it counts ``things``.
        findings: what stands out, caveats last.
        normal: each question that was asked and answered well.
        missing: one sentence for each that could not be asked.
    """

    headline: str
    findings: tuple[Finding, ...]
    normal: tuple[Normal, ...]
    missing: tuple[str, ...]

    @property
    def things(self) -> tuple[Finding, ...]:
        """What stands out about the node."""
        return tuple(one for one in self.findings if not one.is_caveat)

    @property
    def caveats(self) -> tuple[Finding, ...]:
        """What limits the meaning of the other answers."""
        return tuple(one for one in self.findings if one.is_caveat)

    @property
    def severity(self) -> Severity | None:
        """The worst finding's; None when nothing stands out."""
        return max((finding.severity for finding in self.findings), default=None)


def judge(summary: Summary) -> Verdict:
    """Ask every rule."""
    outcomes = [rule(summary) for rule in RULES] if summary.intervals.count else []
    findings = sorted(
        (finding for one in outcomes for finding in one.findings),
        key=lambda one: (one.is_caveat, -one.severity, -one.excess),
    )
    missing = tuple(one.missing for one in outcomes if one.missing)
    normal = tuple(one.normal for one in outcomes if one.normal)
    return Verdict(_headline(summary, findings, bool(normal)), tuple(findings), normal, missing)


def _headline(summary: Summary, findings: list[Finding], judged: bool) -> str:
    if not summary.intervals.count:
        return "Nothing was recorded: there is no interval to judge."
    over = f"in {duration(summary.intervals.ns)}"
    things = [one.severity for one in findings if not one.is_caveat]
    notes, critical = things.count(Severity.NOTE), things.count(Severity.CRITICAL)
    serious = len(things) - notes
    after = f"; {many(notes, 'note')}." if notes else "."
    if serious:
        standing = "1 thing stands out" if serious == 1 else f"{serious} things stand out"
        return f"{standing} {over}" + (f", {critical} of them critical" if critical and serious > 1 else "") + after
    if not judged:
        return f"Nothing could be judged {over}: see what was not seen."
    return f"Nothing stands out {over}{after}"
