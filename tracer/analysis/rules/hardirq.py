"""Does one interrupt line storm, answer for nobody, or run its handler for too long?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group
from tracer.analysis.names import irq_vector, is_irq_vector
from tracer.analysis.rows import text
from tracer.analysis.rules.unasked import not_recorded
from tracer.analysis.summary import Summary
from tracer.units import at_most, duration, percent, rate

__all__ = ["calls_of", "hard_interrupts", "line_name"]


def hard_interrupts(summary: Summary) -> Outcome:
    """Judge ``hardirq.run`` per CPU and line."""
    table = summary.table("hardirq", "run")
    if table is None:
        return not_recorded("hard interrupts", "hardirq", summary)
    seconds = table.seconds
    if seconds <= 0 or not table.groups():
        return missing("hard interrupts: hardirq was recorded, but counted none")
    findings: list[Finding] = []
    most_share = 0.0
    for (cpu, irq, name), group in table.groups("cpu", "irq", "name").items():
        most_share = max(most_share, calls_of(group)[1] / 1e9 / seconds)
        findings += _judge(_Line.of(int(cpu), int(irq), text(name), group, seconds))
    measured = f"{percent(most_share)} of its CPU"
    return outcome(findings, "busiest interrupt", measured, f"under {percent(thresholds.HARDIRQ_SHARE)}")


def calls_of(group: Group) -> tuple[int, int, float]:
    """Return all calls of a handler, their time in ns, and the share that found nothing to do (IRQ_NONE).

    The histogram holds the others only.
    """
    none, one = group.sums.get("none_count", 0), group.statistics
    calls = one.count + none
    return calls, group.sum_ns + group.sums.get("none_ns", 0), none / calls if calls else float("nan")


def line_name(irq: int, name: str) -> str:
    """Return a line as people know it: ``irq 24 (mlx5_comp3)``, ``vector LOC``."""
    if is_irq_vector(irq):
        return f"vector {name}" if name else irq_vector(irq)
    if irq < 0:
        return name or "other lines"
    return f"irq {irq} ({name})" if name else f"irq {irq}"


@dataclass(frozen=True)
class _Line:
    """One line on one CPU: its calls, the share of time they took, and what of them found nothing to do."""

    cpu: int
    told: str
    is_vector: bool
    per_second: float
    share: float
    none_per_second: float
    none_share: float
    longest_ns: float
    values: dict[str, Any]

    @staticmethod
    def of(cpu: int, irq: int, name: str, group: Group, seconds: float) -> _Line:
        calls, ns, none_share = calls_of(group)
        none = group.sums.get("none_count", 0)
        per_second, share = calls / seconds, ns / 1e9 / seconds
        values = {"cpu": cpu, "irq": irq, "name": name, "per_second": per_second, "share": share, "none": none}
        longest_ns, told = group.statistics.max_ns, line_name(irq, name)
        return _Line(cpu, told, is_irq_vector(irq), per_second, share, none / seconds, none_share, longest_ns, values)


def _judge(line: _Line) -> Iterator[Finding]:
    often = line.per_second > thresholds.HARDIRQ_RATE and not line.is_vector
    if line.share > thresholds.HARDIRQ_SHARE or often:
        yield _storm(line)
    elif line.none_share > thresholds.HARDIRQ_NONE_SHARE and line.none_per_second > thresholds.HARDIRQ_NONE_RATE:
        yield _unhandled(line)
    if line.longest_ns > thresholds.HARDIRQ_WORST_NS:
        yield _long(line)


def _storm(line: _Line) -> Finding:
    by_share = line.share > thresholds.HARDIRQ_SHARE
    return Finding(
        rule="hardirq.storm",
        topic="busy interrupt line",
        severity=Severity.CRITICAL if line.share > 3 * thresholds.HARDIRQ_SHARE else Severity.WARNING,
        subject=f"CPU {line.cpu}",
        what=(
            f"CPU {line.cpu}: {line.told} interrupts {rate(line.per_second)} and takes {percent(line.share)} of the "
            f"CPU (normal: under {percent(thresholds.HARDIRQ_SHARE)} and {rate(thresholds.HARDIRQ_RATE)})."
        ),
        who=_spurious(line.none_share),
        next="spread its queues over CPUs, raise coalescing (ethtool -C), or ask who raises it",
        anchor="hard-interrupts",
        value=line.share if by_share else line.per_second,
        threshold=thresholds.HARDIRQ_SHARE if by_share else thresholds.HARDIRQ_RATE,
        unit="1" if by_share else "1/s",
        values=line.values,
    )


def _unhandled(line: _Line) -> Finding:
    return Finding(
        rule="hardirq.unhandled",
        topic="interrupts for nobody",
        severity=Severity.WARNING,
        subject=f"CPU {line.cpu}",
        what=(
            f"CPU {line.cpu}: {line.told}: {rate(line.none_per_second)} interrupts found nothing to do, "
            f"{percent(line.none_share)} of its calls (normal: under "
            f"{percent(thresholds.HARDIRQ_NONE_SHARE)} or {rate(thresholds.HARDIRQ_NONE_RATE)})."
        ),
        who="The line is shared with a busy device, or its device raises spurious interrupts: at 99.9 % unhandled "
        "the kernel switches the line off for all its devices.",
        next="grep the line in /proc/interrupts: who shares it",
        anchor="hard-interrupts",
        value=line.none_per_second,
        threshold=thresholds.HARDIRQ_NONE_RATE,
        unit="1/s",
        values=line.values,
    )


def _long(line: _Line) -> Finding:
    return Finding(
        rule="hardirq.long",
        topic="long interrupt handler",
        severity=Severity.WARNING,
        subject=f"CPU {line.cpu}",
        what=(
            f"CPU {line.cpu}: {line.told} ran for {at_most(line.longest_ns)} in one go (normal: under "
            f"{duration(thresholds.HARDIRQ_WORST_NS)})."
        ),
        who="Nothing else can run on a CPU meanwhile, not even its timer.",
        next="look for console output, firmware (SMI) or a slow device behind this line",
        anchor="hard-interrupts",
        value=line.longest_ns / 1e9,
        threshold=thresholds.HARDIRQ_WORST_NS / 1e9,
        unit="s",
        values=line.values,
    )


def _spurious(none_share: float) -> str:
    if none_share > thresholds.HARDIRQ_NONE_SHARE:
        return f"{percent(none_share)} of the calls found nothing to do: spurious or shared line."
    return ""
