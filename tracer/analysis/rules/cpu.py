"""Is a CPU full, and of what? Busy CPUs are what nodes are for; interrupts and imbalance are not."""

from __future__ import annotations

import statistics

from tracer.analysis import thresholds
from tracer.analysis.cpus import CpuTime, cpu_times
from tracer.analysis.finding import Finding, Outcome, Severity, outcome
from tracer.analysis.names import cpu_list
from tracer.analysis.rules.culprits import by_samples
from tracer.analysis.rules.unasked import not_recorded
from tracer.analysis.summary import Summary
from tracer.units import percent

__all__ = ["cpu_time"]


def cpu_time(summary: Summary) -> Outcome:
    """Judge ``cpustate.time``: interrupt share, saturation, imbalance."""
    cpus = cpu_times(summary)
    if not cpus:
        return not_recorded("where CPU time went", "cpustate", summary)
    findings = _interrupts(cpus) + _saturated(cpus, summary) + _imbalance(cpus)
    most = max(cpus.values(), key=lambda one: one.interrupts)
    measured = f"{percent(most.interrupts)} of CPU {most.cpu}"
    return outcome(findings, "interrupts' CPU time", measured, f"under {percent(thresholds.CPU_INTERRUPTS)}")


def _interrupts(cpus: dict[int, CpuTime]) -> list[Finding]:
    over = [one for one in cpus.values() if one.interrupts > thresholds.CPU_INTERRUPTS]
    if not over:
        return []
    worst = max(over, key=lambda one: one.interrupts)
    where = cpu_list(one.cpu for one in over)
    return [
        Finding(
            rule="cpu.interrupts",
            topic="time lost to interrupts",
            severity=Severity.WARNING,
            subject=where,
            what=(
                f"{where}: interrupts took {percent(worst.interrupts)} of CPU {worst.cpu} (softirqs "
                f"{percent(worst.softirq)}, hard interrupts {percent(worst.hardirq)}; normal: under "
                f"{percent(thresholds.CPU_INTERRUPTS)})."
            ),
            who="Tasks on that CPU run that much slower, and no CPU quota or cgroup limits it.",
            next="see softirqs and interrupt lines below; spread the queues or keep jobs off that CPU",
            anchor="cpu-time",
            value=worst.interrupts,
            threshold=thresholds.CPU_INTERRUPTS,
            unit="1",
            values={"cpus": [one.cpu for one in over], "softirq": worst.softirq, "hardirq": worst.hardirq},
        )
    ]


def _saturated(cpus: dict[int, CpuTime], summary: Summary) -> list[Finding]:
    full = [one for one in cpus.values() if one.busy > thresholds.CPU_BUSY]
    if not full:
        return []
    worst = max(full, key=lambda one: one.busy)
    where = cpu_list(one.cpu for one in full) + (" (all)" if len(full) == len(cpus) > 1 else "")
    return [
        Finding(
            rule="cpu.saturated",
            topic="no idle time",
            severity=Severity.NOTE,
            subject=where,
            what=(
                f"{where}: no idle time is left ({percent(worst.busy)} busy; said above "
                f"{percent(thresholds.CPU_BUSY)})."
            ),
            who=_by_whom(worst.cpu, summary),
            next="harmless alone; together with long waits the job has too few CPUs",
            anchor="cpu-time",
            value=worst.busy,
            threshold=thresholds.CPU_BUSY,
            unit="1",
            values={"cpus": [one.cpu for one in full]},
        )
    ]


def _by_whom(cpu: int, summary: Summary) -> str:
    if sampled := by_samples(summary, cpu):
        return sampled
    if summary.source.task_filters:
        return "Waits and samples are those of the traced tasks only: they don't say who had it."
    held = summary.blame.cpus.get(cpu)
    # Waits are counted where the task ran at last; the holder had the CPU where it waited.
    if held and held.top[1] and next(iter(held.waited_on.items()))[0] == cpu:
        holder, share = held.top
        name = summary.source.task(holder.comm, holder.pid)
        return f"During its long waits {name} had CPU {cpu} for {percent(share)} of the time."
    return "Which tasks ran was not sampled (oncpu was not recorded)."


def _imbalance(cpus: dict[int, CpuTime]) -> list[Finding]:
    # Two CPUs have no middle to be compared with.
    if len(cpus) < 4:
        return []
    busiest = max(cpus.values(), key=lambda one: one.busy)
    middle = statistics.median(one.busy for one in cpus.values())
    if busiest.busy <= thresholds.CPU_BUSY or busiest.busy - middle <= thresholds.CPU_IMBALANCE:
        return []
    return [
        Finding(
            rule="cpu.imbalance",
            topic="uneven load",
            severity=Severity.NOTE,
            subject=f"CPU {busiest.cpu}",
            what=(
                f"CPU {busiest.cpu}: {percent(busiest.busy)} busy while half of the {len(cpus)} CPUs are below "
                f"{percent(middle)} (said from a difference of {percent(thresholds.CPU_IMBALANCE)} on)."
            ),
            who="",
            next="check affinity masks and interrupt affinity: work is pinned there",
            anchor="cpu-time",
            value=busiest.busy - middle,
            threshold=thresholds.CPU_IMBALANCE,
            unit="1",
            values={"cpu": busiest.cpu, "median": middle},
        )
    ]
