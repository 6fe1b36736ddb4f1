"""Do softirqs start late or run long? Packets, timers and block completions wait with them."""

from __future__ import annotations

import math

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.merged import Group, Merged
from tracer.analysis.names import VECTORS, cpu_list, listed, vector
from tracer.analysis.rules.culprits import at_worst, culprit_key, culprit_values, doing, next_step, told_p99, who_held
from tracer.analysis.rules.deeper import look
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
#: A CPU and a vector.
_Place = tuple[int, int]
_RUN_NORMAL = f"under {duration(thresholds.SOFTIRQ_RUN_WORST_NS)}"


def softirq_delay(summary: Summary) -> Outcome:
    """Judge ``softirq.delay`` of the urgent vectors per CPU."""
    table = summary.table("softirq", "delay")
    if table is None:
        return not_recorded("how late softirqs start", "softirq", summary)
    every = {(cpu, number): one for number in URGENT for cpu, one in _by_cpu(table, number).items() if one.count}
    if not every:
        return missing("how late softirqs start: of network, block device and timers none was raised")
    stories: dict[tuple[object, ...], list[_Place]] = {}
    for (cpu, number), one in every.items():
        if _late(one):
            held = summary.blame.vectors.get((cpu, number))
            # Whoever holds a CPU holds all of its softirqs up: one story.
            actor = held is not None and held.cause in ("hog", "own", "crew")
            stories.setdefault((*culprit_key(held), None if actor else number), []).append((cpu, number))
    findings = [_delay({place: every[place] for place in places}, summary) for places in stories.values()]
    return outcome(findings, "softirq delay", _measured_delay([*every.values()]), _DELAY_NORMAL)


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


def _delay(late: dict[_Place, Statistics], summary: Summary) -> Finding:
    worst = max(late, key=lambda one: late[one].max_ns)
    p99_place = max(late, key=lambda one: (judged(late[one]), late[one].p99_ns, late[one].count))
    worst_ns, (p99_ns, p99) = late[worst].max_ns, told_p99(late[p99_place])
    members, numbers = sorted({cpu for cpu, _ in late}), sorted({number for _, number in late}, key=URGENT.index)
    held = summary.blame.vectors.get(worst)
    use_worst = not worst_ns / thresholds.SOFTIRQ_DELAY_WORST_NS < p99_ns / thresholds.SOFTIRQ_DELAY_P99_NS
    counted = count(late[p99_place].count)
    counted += f" {vector(p99_place[1])}" if len(numbers) > 1 else ""
    counted += f" on CPU {p99_place[0]}" if len(members) > 1 else ""
    names, sampled = listed([vector(number) for number in numbers]), doing(summary, held)
    return Finding(
        rule="softirq.delay",
        topic=f"late {names} softirqs",
        severity=Severity.CRITICAL if worst_ns > thresholds.SOFTIRQ_CRITICAL_NS else Severity.WARNING,
        subject=cpu_list(members),
        what=(
            f"{cpu_list(members)}: {names} softirqs started late, at worst {at_worst(worst_ns, held)} "
            f"({p99}of {counted}; normal: {_DELAY_NORMAL})."
        ),
        who=" ".join(filter(None, (source_of(summary, worst[1], worst[0]), who_held(held, "delays"), sampled))),
        next=next_step(summary, held, "delays", sampled),
        anchor="softirq-delay",
        value=(worst_ns if use_worst else p99_ns) / 1e9,
        threshold=(thresholds.SOFTIRQ_DELAY_WORST_NS if use_worst else thresholds.SOFTIRQ_DELAY_P99_NS) / 1e9,
        unit="s",
        values={
            "cpus": members,
            "vector": vector(worst[1]),
            "vectors": [vector(number) for number in numbers],
            "p99_s": p99_ns / 1e9,
            "max_s": worst_ns / 1e9,
        }
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
        next=look(summary, "which function of which driver"),
        anchor="softirq-run",
        value=worst_ns / 1e9,
        threshold=thresholds.SOFTIRQ_RUN_WORST_NS / 1e9,
        unit="s",
        values={"cpus": members, "vector": vector(number)},
    )
