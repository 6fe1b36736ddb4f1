"""Do runnable tasks wait too long for a CPU, and who has it?"""

from __future__ import annotations

from tracer import histogram
from tracer.analysis import thresholds
from tracer.analysis.blame import Held
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.names import cpu_list
from tracer.analysis.rules.culprits import at_worst, by_samples, culprit_key, culprit_values, next_step, who_held
from tracer.analysis.statistics import Statistics
from tracer.analysis.summary import Summary
from tracer.units import at_most, count, duration

__all__ = ["run_queue"]

_NORMAL = f"p99 < {duration(thresholds.RUNQUEUE_P99_NS)}, worst < {duration(thresholds.RUNQUEUE_WORST_NS)}"


def run_queue(summary: Summary) -> Outcome:
    """Judge ``runqueue.wait`` per CPU; CPUs with the same cause become one finding."""
    table = summary.table("runqueue", "wait")
    if table is None:
        return missing("how long runnable tasks waited for a CPU: runqueue was not recorded")
    cpus = {int(cpu): group.statistics for (cpu,), group in table.groups("cpu").items()}
    if not any(one.count for one in cpus.values()):
        return missing("how long runnable tasks waited for a CPU: runqueue was recorded, but counted no wait")
    stories: dict[tuple[object, ...], list[int]] = {}
    for cpu, one in cpus.items():
        if _stands_out(one):
            stories.setdefault(culprit_key(summary.blame.cpus.get(cpu)), []).append(cpu)
    everything = table.total().statistics
    measured = f"p99 {duration(everything.p99_ns)}, worst {at_most(everything.max_ns)}"
    findings = [_finding(members, cpus, summary) for members in stories.values()]
    return outcome(findings, "run-queue wait", measured, _NORMAL)


def _stands_out(one: Statistics) -> bool:
    # A quantile is its bucket's upper edge: the whole bucket has to lie beyond.
    p99 = one.count >= thresholds.LEAST_SAMPLES and one.p99_ns > thresholds.RUNQUEUE_P99_NS * histogram.GROWTH
    return p99 or one.max_ns > thresholds.RUNQUEUE_WORST_NS


def _finding(members: list[int], cpus: dict[int, Statistics], summary: Summary) -> Finding:
    worst_cpu = max(members, key=lambda cpu: (cpus[cpu].max_ns, cpus[cpu].p99_ns))
    worst_ns, p99_ns = cpus[worst_cpu].max_ns, max(cpus[cpu].p99_ns for cpu in members)
    held = summary.blame.cpus.get(worst_cpu)
    if held and held.longest_ns:
        p99_ns = min(p99_ns, held.longest_ns)  # exact, where the quantile is an upper edge
    waits = sum(cpus[cpu].count for cpu in members)
    use_worst = worst_ns / thresholds.RUNQUEUE_WORST_NS >= p99_ns / thresholds.RUNQUEUE_P99_NS
    decided = worst_ns if use_worst else p99_ns
    threshold = thresholds.RUNQUEUE_WORST_NS if use_worst else thresholds.RUNQUEUE_P99_NS
    return Finding(
        rule="runqueue.wait",
        severity=Severity.CRITICAL if worst_ns > thresholds.RUNQUEUE_CRITICAL_NS else Severity.WARNING,
        subject=cpu_list(members),
        what=(
            f"{cpu_list(members)}: runnable tasks waited for the CPU, at worst {at_worst(worst_ns, held)} "
            f"(p99 {at_most(p99_ns)} of {count(waits)} waits; normal: {_NORMAL})."
        ),
        who=" ".join(filter(None, (who_held(held), _elsewhere(worst_cpu, held), _sampled(summary, worst_cpu, held)))),
        next=next_step(held),
        anchor="run-queue-wait",
        value=decided / 1e9,
        threshold=threshold / 1e9,
        unit="s",
        values={
            "cpus": members,
            "p99_s": p99_ns / 1e9,
            "max_s": worst_ns / 1e9,
            "count": waits,
            **culprit_values(held),
        },
    )


def _sampled(summary: Summary, cpu: int, held: Held | None) -> str:
    """Samples help where the log of the waits names nobody."""
    return by_samples(summary, cpu) if held is None or held.cause in ("unseen", "crowd") else ""


def _elsewhere(cpu: int, held: Held | None) -> str:
    """Waits are counted where the task ran at last, which may not be where it waited."""
    if held is None:
        return ""
    for waited, ns in held.waited_on.items():
        if waited != cpu and held.share(ns) > 0.5:
            return f"They had waited on CPU {waited} and were moved to CPU {cpu} to run."
        break
    return ""
