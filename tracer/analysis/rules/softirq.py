"""Do softirqs start late or run long? Packets, timers and block completions wait with them."""

from __future__ import annotations

import math

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group, Merged
from tracer.analysis.names import VECTORS, cpu_list, vector
from tracer.analysis.rules.culprits import at_worst, culprit_key, culprit_values, next_step, told_p99, who_held
from tracer.analysis.rules.sources import source_of
from tracer.analysis.rules.unasked import not_recorded
from tracer.analysis.statistics import Statistics, judged
from tracer.analysis.summary import Summary
from tracer.units import at_most, count, duration

__all__ = ["softirq_delay", "softirq_run"]

# RCU, TASKLET, SCHED and the like are raised to be done at some time; nobody waits for them as for these.
URGENT = tuple(VECTORS.index(name) for name in ("NET_RX", "NET_TX", "BLOCK", "TIMER", "HRTIMER"))
_DELAY_NORMAL = (
    f"p99 < {duration(thresholds.SOFTIRQ_DELAY_P99_NS)}, worst < {duration(thresholds.SOFTIRQ_DELAY_WORST_NS)}"
)
_ALONE = "No task and no other softirq ran on that CPU meanwhile; hard interrupts did, their time is not counted."
_RUN_NORMAL = f"under {duration(thresholds.SOFTIRQ_RUN_WORST_NS)}"


def softirq_delay(summary: Summary) -> Outcome:
    """Judge ``softirq.delay`` of the urgent vectors per CPU."""
    table = summary.table("softirq", "delay")
    if table is None:
        return not_recorded("how late softirqs start", "softirq", summary)
    findings: list[Finding] = []
    everyone: list[Statistics] = []
    for number in URGENT:
        cpus = _by_cpu(table, number)
        everyone += [one for one in cpus.values() if one.count]
        stories: dict[tuple[object, ...], list[int]] = {}
        for cpu, one in cpus.items():
            if _late(one):
                stories.setdefault(culprit_key(summary.blame.vectors.get((cpu, number))), []).append(cpu)
        findings += [_delay(number, members, cpus, summary) for members in stories.values()]
    if not everyone:
        return missing("how late softirqs start: of network, block device and timers none was raised")
    return outcome(findings, "softirq delay", _measured_delay(everyone), _DELAY_NORMAL)


def _measured_delay(everyone: list[Statistics]) -> str:
    """The largest p99 of those that are judged, and the worst of all."""
    p99_ns = max((one.p99_ns for one in everyone if judged(one)), default=math.nan)
    return f"p99 {duration(p99_ns)}, worst {at_most(max(one.max_ns for one in everyone))}"


def softirq_run(summary: Summary) -> Outcome:
    """Judge the longest ``softirq.run`` of every vector."""
    table = summary.table("softirq", "run")
    if table is None:
        return not_recorded("how long softirqs run", "softirq", summary)
    longest = table.total().statistics
    if not longest.count:
        return missing("how long softirqs run: softirq was recorded, but counted no run")
    findings = []
    for number in range(len(VECTORS)):
        cpus = _by_cpu(table, number)
        long = [cpu for cpu, one in cpus.items() if one.max_ns > thresholds.SOFTIRQ_RUN_WORST_NS]
        if long:
            findings.append(_run(number, long, cpus, summary))
    return outcome(findings, "longest softirq", at_most(longest.max_ns), _RUN_NORMAL)


def _late(one: Statistics) -> bool:
    p99 = judged(one) and one.p99_ns > thresholds.SOFTIRQ_DELAY_P99_NS
    return p99 or one.max_ns > thresholds.SOFTIRQ_DELAY_WORST_NS


def _by_cpu(table: Merged, number: int) -> dict[int, Statistics]:
    groups: dict[tuple[int, ...], Group] = table.groups("cpu", vector=number)
    return {int(cpu): group.statistics for (cpu,), group in groups.items()}


def _delay(number: int, members: list[int], cpus: dict[int, Statistics], summary: Summary) -> Finding:
    worst_cpu = max(members, key=lambda cpu: cpus[cpu].max_ns)
    p99_cpu = max(members, key=lambda cpu: (judged(cpus[cpu]), cpus[cpu].p99_ns, cpus[cpu].count))
    worst_ns, (p99_ns, p99) = cpus[worst_cpu].max_ns, told_p99(cpus[p99_cpu])
    held = summary.blame.vectors.get((worst_cpu, number))
    use_worst = not worst_ns / thresholds.SOFTIRQ_DELAY_WORST_NS < p99_ns / thresholds.SOFTIRQ_DELAY_P99_NS
    counted = f"{count(cpus[p99_cpu].count)}{f' on CPU {p99_cpu}' if len(members) > 1 else ''}"
    return Finding(
        rule="softirq.delay",
        topic=f"late {vector(number)} softirqs",
        severity=Severity.CRITICAL if worst_ns > thresholds.SOFTIRQ_CRITICAL_NS else Severity.WARNING,
        subject=cpu_list(members),
        what=(
            f"{cpu_list(members)}: {vector(number)} softirqs started late, at worst {at_worst(worst_ns, held)} "
            f"({p99}of {counted}; normal: {_DELAY_NORMAL})."
        ),
        who=" ".join(filter(None, (source_of(summary, number, worst_cpu), who_held(held, "delays")))),
        next=next_step(held, "delays"),
        anchor="softirq-delay",
        value=(worst_ns if use_worst else p99_ns) / 1e9,
        threshold=(thresholds.SOFTIRQ_DELAY_WORST_NS if use_worst else thresholds.SOFTIRQ_DELAY_P99_NS) / 1e9,
        unit="s",
        values={"cpus": members, "vector": vector(number), "p99_s": p99_ns / 1e9, "max_s": worst_ns / 1e9}
        | culprit_values(held),
    )


def _run(number: int, members: list[int], cpus: dict[int, Statistics], summary: Summary) -> Finding:
    worst_cpu = max(members, key=lambda cpu: cpus[cpu].max_ns)
    worst_ns, source = cpus[worst_cpu].max_ns, source_of(summary, number, worst_cpu)
    return Finding(
        rule="softirq.run",
        topic=f"a long {vector(number)} softirq",
        severity=Severity.WARNING,
        subject=cpu_list(members),
        what=(
            f"{cpu_list(members)}: a {vector(number)} softirq ran for {at_most(worst_ns)} in one go "
            f"(normal: {_RUN_NORMAL})."
        ),
        who=" ".join(filter(None, (source, _ALONE))),
        next="foreshock record --deep shows which function of which driver",
        anchor="softirq-run",
        value=worst_ns / 1e9,
        threshold=thresholds.SOFTIRQ_RUN_WORST_NS / 1e9,
        unit="s",
        values={"cpus": members, "vector": vector(number)},
    )
