"""Do softirqs start late or run long? Packets, timers and block completions wait with them."""

from __future__ import annotations

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group, Merged
from tracer.analysis.names import VECTORS, cpu_list, vector
from tracer.analysis.rules.culprits import at_worst, culprit_key, culprit_values, next_step, who_held
from tracer.analysis.statistics import Statistics
from tracer.analysis.summary import Summary
from tracer.units import at_most, count, duration

__all__ = ["softirq_delay", "softirq_run"]

# RCU, TASKLET, SCHED and the like are raised to be done at some time; nobody waits for them as for these.
URGENT = tuple(VECTORS.index(name) for name in ("NET_RX", "NET_TX", "BLOCK", "TIMER", "HRTIMER"))
_DELAY_NORMAL = (
    f"p99 < {duration(thresholds.SOFTIRQ_DELAY_P99_NS)}, worst < {duration(thresholds.SOFTIRQ_DELAY_WORST_NS)}"
)
_RUN_NORMAL = f"under {duration(thresholds.SOFTIRQ_RUN_WORST_NS)}"


def softirq_delay(summary: Summary) -> Outcome:
    """Judge ``softirq.delay`` of the urgent vectors per CPU."""
    table = summary.table("softirq", "delay")
    if table is None:
        return missing("how late softirqs start: softirq was not recorded")
    findings: list[Finding] = []
    for number in URGENT:
        cpus = _by_cpu(table, number)
        stories: dict[tuple[object, ...], list[int]] = {}
        for cpu, one in cpus.items():
            if _late(one):
                stories.setdefault(culprit_key(summary.blame.vectors.get((cpu, number))), []).append(cpu)
        findings += [_delay(number, members, cpus, summary) for members in stories.values()]
    network = table.total(vector=VECTORS.index("NET_RX")).statistics
    measured = f"p99 {duration(network.p99_ns)}, worst {at_most(network.max_ns)}" if network.count else "none raised"
    return outcome(findings, "NET_RX softirq delay", measured, _DELAY_NORMAL)


def softirq_run(summary: Summary) -> Outcome:
    """Judge the longest ``softirq.run`` of every vector."""
    table = summary.table("softirq", "run")
    if table is None:
        return missing("how long softirqs run: softirq was not recorded")
    findings = []
    for number in range(len(VECTORS)):
        cpus = _by_cpu(table, number)
        long = [cpu for cpu, one in cpus.items() if one.max_ns > thresholds.SOFTIRQ_RUN_WORST_NS]
        if long:
            findings.append(_run(number, long, cpus))
    return outcome(findings, "longest softirq", at_most(table.total().statistics.max_ns), _RUN_NORMAL)


def _late(one: Statistics) -> bool:
    p99 = one.count >= thresholds.LEAST_SAMPLES and one.p99_ns > thresholds.SOFTIRQ_DELAY_P99_NS
    return p99 or one.max_ns > thresholds.SOFTIRQ_DELAY_WORST_NS


def _by_cpu(table: Merged, number: int) -> dict[int, Statistics]:
    groups: dict[tuple[int, ...], Group] = table.groups("cpu", vector=number)
    return {int(cpu): group.statistics for (cpu,), group in groups.items()}


def _delay(number: int, members: list[int], cpus: dict[int, Statistics], summary: Summary) -> Finding:
    worst_cpu = max(members, key=lambda cpu: cpus[cpu].max_ns)
    worst_ns, p99_ns = cpus[worst_cpu].max_ns, max(cpus[cpu].p99_ns for cpu in members)
    held = summary.blame.vectors.get((worst_cpu, number))
    use_worst = worst_ns / thresholds.SOFTIRQ_DELAY_WORST_NS >= p99_ns / thresholds.SOFTIRQ_DELAY_P99_NS
    served = sum(cpus[cpu].count for cpu in members)
    return Finding(
        rule="softirq.delay",
        severity=Severity.CRITICAL if worst_ns > thresholds.SOFTIRQ_CRITICAL_NS else Severity.WARNING,
        subject=cpu_list(members),
        what=(
            f"{cpu_list(members)}: {vector(number)} softirqs started late, at worst {at_worst(worst_ns, held)} "
            f"(p99 {at_most(p99_ns)} of {count(served)}; normal: {_DELAY_NORMAL})."
        ),
        who=who_held(held, "delays"),
        next=next_step(held),
        anchor="softirq-delay",
        value=(worst_ns if use_worst else p99_ns) / 1e9,
        threshold=(thresholds.SOFTIRQ_DELAY_WORST_NS if use_worst else thresholds.SOFTIRQ_DELAY_P99_NS) / 1e9,
        unit="s",
        values={"cpus": members, "vector": vector(number), "p99_s": p99_ns / 1e9, "max_s": worst_ns / 1e9}
        | culprit_values(held),
    )


def _run(number: int, members: list[int], cpus: dict[int, Statistics]) -> Finding:
    worst_ns = max(cpus[cpu].max_ns for cpu in members)
    return Finding(
        rule="softirq.run",
        severity=Severity.WARNING,
        subject=cpu_list(members),
        what=(
            f"{cpu_list(members)}: a {vector(number)} softirq ran for {at_most(worst_ns)} in one go "
            f"(normal: {_RUN_NORMAL})."
        ),
        who="No task and no other softirq ran on that CPU meanwhile; hard interrupts did, their time is not counted.",
        next="foreshock record --deep shows which function of which driver",
        anchor="softirq-run",
        value=worst_ns / 1e9,
        threshold=thresholds.SOFTIRQ_RUN_WORST_NS / 1e9,
        unit="s",
        values={"cpus": members, "vector": vector(number)},
    )
