"""Does one interrupt line storm, answer for nobody, or run its handler for too long?"""

from __future__ import annotations

from collections.abc import Iterator

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group
from tracer.analysis.names import is_irq_vector
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
        findings += _judge(int(cpu), int(irq), text(name), group, seconds)
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
        return f"vector {name or irq - 1_000_000}"
    if irq < 0:
        return name or "other lines"
    return f"irq {irq} ({name})" if name else f"irq {irq}"


def _judge(cpu: int, irq: int, name: str, group: Group, seconds: float) -> Iterator[Finding]:
    one = group.statistics
    calls, ns, none_share = calls_of(group)
    per_second, share = calls / seconds, ns / 1e9 / seconds
    none = group.sums.get("none_count", 0)
    line = line_name(irq, name)
    values = {"cpu": cpu, "irq": irq, "name": name, "per_second": per_second, "share": share, "none": none}
    if share > thresholds.HARDIRQ_SHARE or (per_second > thresholds.HARDIRQ_RATE and not is_irq_vector(irq)):
        by_share = share > thresholds.HARDIRQ_SHARE
        yield Finding(
            rule="hardirq.storm",
            topic="busy interrupt line",
            severity=Severity.CRITICAL if share > 3 * thresholds.HARDIRQ_SHARE else Severity.WARNING,
            subject=f"CPU {cpu}",
            what=(
                f"CPU {cpu}: {line} interrupts {rate(per_second)} and takes {percent(share)} of the CPU (normal: under "
                f"{percent(thresholds.HARDIRQ_SHARE)} and {rate(thresholds.HARDIRQ_RATE)})."
            ),
            who=_spurious(none_share),
            next="spread its queues over CPUs, raise coalescing (ethtool -C), or ask who raises it",
            anchor="hard-interrupts",
            value=share if by_share else per_second,
            threshold=thresholds.HARDIRQ_SHARE if by_share else thresholds.HARDIRQ_RATE,
            unit="1" if by_share else "1/s",
            values=values,
        )
    elif none_share > thresholds.HARDIRQ_NONE_SHARE and none / seconds > thresholds.HARDIRQ_NONE_RATE:
        yield Finding(
            rule="hardirq.unhandled",
            topic="interrupts for nobody",
            severity=Severity.WARNING,
            subject=f"CPU {cpu}",
            what=(
                f"CPU {cpu}: {line}: {rate(none / seconds)} interrupts found nothing to do, "
                f"{percent(none_share)} of its calls (normal: under "
                f"{percent(thresholds.HARDIRQ_NONE_SHARE)} or {rate(thresholds.HARDIRQ_NONE_RATE)})."
            ),
            who="The line is shared with a busy device, or its device raises spurious interrupts: at 99.9 % unhandled "
            "the kernel switches the line off for all its devices.",
            next="grep the line in /proc/interrupts: who shares it",
            anchor="hard-interrupts",
            value=none / seconds,
            threshold=thresholds.HARDIRQ_NONE_RATE,
            unit="1/s",
            values=values,
        )
    if one.max_ns > thresholds.HARDIRQ_WORST_NS:
        yield Finding(
            rule="hardirq.long",
            topic="long interrupt handler",
            severity=Severity.WARNING,
            subject=f"CPU {cpu}",
            what=(
                f"CPU {cpu}: {line} ran for {at_most(one.max_ns)} in one go (normal: under "
                f"{duration(thresholds.HARDIRQ_WORST_NS)})."
            ),
            who="Nothing else can run on a CPU meanwhile, not even its timer.",
            next="look for console output, firmware (SMI) or a slow device behind this line",
            anchor="hard-interrupts",
            value=one.max_ns / 1e9,
            threshold=thresholds.HARDIRQ_WORST_NS / 1e9,
            unit="s",
            values=values,
        )


def _spurious(none_share: float) -> str:
    if none_share > thresholds.HARDIRQ_NONE_SHARE:
        return f"{percent(none_share)} of the calls found nothing to do: spurious or shared line."
    return ""
