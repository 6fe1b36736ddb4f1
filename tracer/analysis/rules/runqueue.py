"""Do runnable tasks wait too long for a CPU, and who has it?"""

from __future__ import annotations

import math

from tracer import histogram
from tracer.analysis import thresholds
from tracer.analysis.blame import MAIN_SHARE, Held
from tracer.analysis.events import Tally
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.ledger import throttled
from tracer.analysis.names import cpu_list
from tracer.analysis.rules.culprits import (
    at_worst,
    by_samples,
    culprit_key,
    culprit_values,
    doing,
    next_step,
    told_p99,
    waiting,
    who_held,
)
from tracer.analysis.rules.unasked import not_recorded
from tracer.analysis.statistics import Statistics, judged
from tracer.analysis.summary import Summary
from tracer.units import at_most, duration, many, percent

__all__ = ["run_queue"]

#: A throttled task waits, whoever has the CPU meanwhile: the log of stays can't tell, the ledger can.
_QUOTA = "By the ledger it was the waiting tasks' own quota, whoever had the CPU meanwhile: not a neighbour."
_RAISE = "raise their cpu.max (a pod's CPU limit), or run fewer threads"

_NORMAL = f"p99 < {duration(thresholds.RUNQUEUE_P99_NS)}, worst < {duration(thresholds.RUNQUEUE_WORST_NS)}"


def run_queue(summary: Summary) -> Outcome:
    """Judge ``runqueue.wait`` per CPU; CPUs with the same cause become one finding."""
    table = summary.table("runqueue", "wait")
    if table is None:
        return not_recorded("how long runnable tasks waited for a CPU", "runqueue", summary)
    cpus = {int(cpu): group.statistics for (cpu,), group in table.groups("cpu").items()}
    if not any(one.count for one in cpus.values()):
        return missing("how long runnable tasks waited for a CPU: runqueue was recorded, but counted no wait")
    stories: dict[tuple[object, ...], list[int]] = {}
    for cpu, one in cpus.items():
        if _stands_out(one):
            stories.setdefault(culprit_key(_blamed([cpu], summary)), []).append(cpu)
    findings = [_finding(members, cpus, summary) for members in stories.values()]
    measured = f"{_measured_p99(cpus)}, worst {at_most(table.total().statistics.max_ns)}"
    return outcome(findings, "run-queue wait", measured, _NORMAL)


def _measured_p99(cpus: dict[int, Statistics]) -> str:
    """The largest p99 of those that are judged, by the limit that applies to each."""
    p99_ns = max((one.p99_ns for one in cpus.values() if judged(one)), default=math.nan)
    # Beyond the limit is who lies there with the whole bucket.
    limit = thresholds.RUNQUEUE_P99_NS
    return f"p99 about {duration(limit)}" if p99_ns > limit else f"p99 {duration(p99_ns)}"


def _stands_out(one: Statistics) -> bool:
    # A quantile is its bucket's upper edge: the whole bucket has to lie beyond.
    p99 = judged(one) and one.p99_ns > thresholds.RUNQUEUE_P99_NS * histogram.GROWTH
    return p99 or one.max_ns > thresholds.RUNQUEUE_WORST_NS


def _finding(members: list[int], cpus: dict[int, Statistics], summary: Summary) -> Finding:
    worst_cpu = max(members, key=lambda cpu: (cpus[cpu].max_ns, cpus[cpu].p99_ns))
    p99_cpu = max(members, key=lambda cpu: (judged(cpus[cpu]), cpus[cpu].p99_ns, cpus[cpu].count))
    if cpus[p99_cpu].p99_ns <= thresholds.RUNQUEUE_P99_NS:
        p99_cpu = worst_cpu  # normal everywhere: it is told of the CPU with the long wait
    worst_ns, held, blamed = cpus[worst_cpu].max_ns, summary.blame.cpus.get(worst_cpu), _blamed(members, summary)
    # A single wait is exact, where the quantile is an upper edge.
    p99_ns, p99 = told_p99(cpus[p99_cpu], held.longest_ns if held and held.longest_ns else math.inf)
    use_worst = not worst_ns / thresholds.RUNQUEUE_WORST_NS < p99_ns / thresholds.RUNQUEUE_P99_NS
    decided = worst_ns if use_worst else p99_ns
    threshold = thresholds.RUNQUEUE_WORST_NS if use_worst else thresholds.RUNQUEUE_P99_NS
    places = _waited_on(members, summary)
    subject, counted_on = _subject(members, places), f"CPU {p99_cpu}"
    ended = f" that ended on {counted_on}, wherever they began" if subject != counted_on else ""
    longest_on = f"{_longest_on(subject, held)}{_moved_to(worst_cpu, held)}"
    sampled, where = doing(summary, blamed), next(iter(places), worst_cpu)
    quota = _by_quota(blamed, throttled(summary))
    blame = (f"{_QUOTA}{waiting(blamed)}",) if blamed and quota else (who_held(blamed), sampled)
    who = (*blame, _elsewhere(members, places, summary), _sampled(summary, where, blamed))
    return Finding(
        rule="runqueue.wait",
        topic="long waits for a CPU",
        severity=Severity.CRITICAL if worst_ns > thresholds.RUNQUEUE_CRITICAL_NS else Severity.WARNING,
        subject=subject,
        what=(
            f"{subject}: runnable tasks waited for the CPU, at worst {at_worst(worst_ns, held)}{longest_on} "
            f"({p99}of {many(cpus[p99_cpu].count, 'wait')}{ended}; normal: {_NORMAL})."
        ),
        who=" ".join(filter(None, who)),
        next=_RAISE if quota else next_step(summary, blamed, sampled=sampled),
        anchor="run-queue-wait",
        value=decided / 1e9,
        threshold=threshold / 1e9,
        unit="s",
        values={
            "cpus": members,
            "waited_on": places,
            "p99_s": p99_ns / 1e9,
            "max_s": worst_ns / 1e9,
            "count": sum(cpus[cpu].count for cpu in members),
            **culprit_values(blamed),
            **({"cause": "quota"} if quota else {}),
        },
    )


def _by_quota(held: Held | None, cgroups: set[str]) -> bool:
    """Return whether most of the waiting was that of tasks in ``cgroups``."""
    waited = held.victims if held else Tally()
    return 2 * sum(ns for (_, cgroup), ns in waited.items() if cgroup in cgroups - {"", "/"}) > waited.total > 0


def _sampled(summary: Summary, cpu: int, held: Held | None) -> str:
    """Samples help where the log of the waits names nobody."""
    return by_samples(summary, cpu) if held is None or held.cause in ("unseen", "crowd") else ""


def _waited_on(members: list[int], summary: Summary) -> dict[int, float]:
    """Return where the long waits of ``members`` were spent, as shares, the most first.

    Waits are counted where the task ran at last, which may not be where it waited.
    """
    places: Tally[int] = Tally()
    for member in members:
        held = summary.blame.cpus.get(member)
        for cpu, ns in held.waited_on.items() if held else ():
            places.add(cpu, ns)
    return {cpu: ns / places.total for cpu, ns in places.items()} if places.total else {}


def _blamed(members: list[int], summary: Summary) -> Held | None:
    """Return what held the CPU on which most was waited; where there is no such one, that on which most tasks ran."""
    places = _waited_on(members, summary)
    most = next(iter(places), None)
    if most is not None and places[most] > MAIN_SHARE:
        return summary.blame.places.get(most)
    every = [held for member in members if (held := summary.blame.cpus.get(member))]
    return max(every, key=lambda held: held.wait_ns, default=None)


def _subject(members: list[int], places: dict[int, float]) -> str:
    """The CPU where most of the time was waited; all that took part when there is no such one."""
    most = next(iter(places), None)
    if most is not None and places[most] > MAIN_SHARE:
        return cpu_list([most])
    return cpu_list([*members, *places])


def _longest_on(subject: str, held: Held | None) -> str:
    """Name the CPU of the longest wait where that is not the one that most of the time was waited on."""
    if held is None or held.longest_on is None or cpu_list([held.longest_on]) == subject:
        return ""
    return f" on CPU {held.longest_on}"


def _moved_to(cpu: int, held: Held | None) -> str:
    """Say that the longest wait ended on another CPU than it was spent on: waits are counted where they end."""
    if held is None or held.longest_on in (None, cpu):
        return ""
    return f", until the task was moved to CPU {cpu}"


def _elsewhere(members: list[int], places: dict[int, float], summary: Summary) -> str:
    """Say where they waited and where they ran, unless that is one CPU."""
    if not places or ([*places] == members and len(members) == 1):
        return ""
    most, *others = places
    said = f"All of this waiting was on CPU {most}"
    if others:
        said = f"{percent(places[most])} of this waiting was on CPU {most}, the rest on {cpu_list(others)}"
    ends = [cpu for cpu in members if cpu in summary.blame.cpus]
    moved = [cpu for cpu in ends if any(start != cpu for start, _ in summary.blame.cpus[cpu].waited_on.items())]
    return f"{said}; tasks that were moved ran on {cpu_list(moved)} at last." if moved else f"{said}."
