"""Sentences on who held a CPU: one task, many of one program, a crowd, interrupts, nobody seen, foreshock itself."""

from __future__ import annotations

import math

from tracer.analysis.blame import IDLE_SHARE, Held
from tracer.analysis.cpus import sampled_function, sampled_tasks
from tracer.analysis.names import own_task, quoted, task
from tracer.analysis.rules.deeper import look, sample_again
from tracer.analysis.statistics import Statistics
from tracer.analysis.summary import Summary
from tracer.histogram import slot_of
from tracer.units import at_most, duration, percent

__all__ = [
    "at_worst",
    "by_samples",
    "culprit_key",
    "culprit_values",
    "doing",
    "next_step",
    "told_p99",
    "waiting",
    "who_held",
]


_CALLERS = 3
_SAMPLED = "its stacks on the CPU show the whole way there"


def at_worst(max_ns: float, held: Held | None) -> str:
    """Return the worst value of a histogram: exactly when its event was recorded, else its bucket's upper edge."""
    if held and math.isfinite(max_ns) and slot_of(held.longest_ns) == slot_of(int(max_ns)):
        return duration(held.longest_ns)
    return at_most(max_ns)


def told_p99(one: Statistics, most_ns: float = math.inf) -> tuple[float, str]:
    """Return a p99 of at most ``most_ns`` and how it is told; NaN and nothing where single values would decide it."""
    p99_ns = min(one.told.p99_ns, most_ns)
    return p99_ns, f"p99 {at_most(p99_ns)} " if p99_ns == p99_ns else ""


def culprit_key(held: Held | None) -> tuple[object, ...]:
    """Return what makes two CPUs the same story: the cause and its main actor."""
    if held is None:
        return ("unknown",)
    if held.cause in ("hog", "own"):
        return (held.cause, held.top[0])
    if held.cause == "crew":
        return ("crew", *held.crew[:2])
    return (held.cause,)


def who_held(held: Held | None, what: str = "waits") -> str:
    """Return sentences on who held the CPU during the long ``what``."""
    if held is None:
        return f"Who held the CPU was not recorded for any of these {what}."
    return f"{_actor(held, what)}{_relation(held)}{waiting(held)}"


def by_samples(summary: Summary, cpu: int) -> str:
    """Return who ran on ``cpu`` by on-CPU samples; empty when they were not recorded, or of some tasks only."""
    sampled = [] if summary.source.task_filters else sampled_tasks(summary, cpu)
    names = ", ".join(f"{summary.source.task(comm, pid)} {percent(share)}" for comm, pid, share in sampled)
    return f"By samples, CPU {cpu} ran {names}." if names else ""


def doing(summary: Summary, held: Held | None) -> str:
    """Return what the task that held the CPU was doing by on-CPU samples; empty without any, or without one task."""
    found = sampled_function(summary, held.top[0].pid) if held and held.cause == "hog" else None
    if found is None:
        return ""
    share, (function, *callers) = found
    by = f", called by {', '.join(map(quoted, callers[:_CALLERS]))}" if callers else ""
    return f"By samples it was in {quoted(function)} for {percent(share)} of its time{by}."


def next_step(summary: Summary, held: Held | None, what: str = "waits", sampled: str = "") -> str:
    """Return what to do about it; ``sampled`` is what ``doing`` said."""
    if held is None:
        return "record longer: long waits with their holder are single events"
    holder, _ = held.top
    if held.cause == "idle" and what == "delays":
        return "look for steal time (virtual machine) and deep idle states (cpuidle)"
    if held.cause == "unseen":
        return _look_closer(summary, held)
    if held.cause == "hog" and holder.pid in held.special:
        return f"lower the policy or priority of {task(holder.comm, holder.pid)} (chrt), or move it to CPUs of its own"
    code = _SAMPLED if sampled else sample_again(summary, holder.pid)
    return {
        "own": "fewer probes (--probes), fewer CPUs (--cpus) or a longer --interval; please report it",
        "hog": f"move, pin or throttle {task(holder.comm, holder.pid)}; {code}",
        "crew": f"give {quoted(held.crew[0])} its own CPUs or fewer workers",
        "several": "see the worst waits below: one holder each",
        "crowd": "fewer runnable tasks for these CPUs: thread counts, cpusets, affinity",
        "softirq": "see softirqs and devices below; spread the queues' interrupts (RSS, RPS, affinity)",
        "hardirq": "see interrupt lines below; spread or coalesce that line",
        "idle": "see whether nr_throttled grows in the cgroup's cpu.stat; if not, steal time and idle states (cpuidle)",
    }[held.cause]


def culprit_values(held: Held | None) -> dict[str, object]:
    """Return the same facts for programs."""
    if held is None:
        return {"cause": "unknown"}
    holder, share = held.top
    return {
        "cause": held.cause,
        "holder_comm": holder.comm,
        "holder_pid": holder.pid,
        "holder_cgroup": holder.cgroup,
        "holder_scheduling": held.special.get(holder.pid, ""),
        "holder_share": share,
        "task_share": held.share(held.task_ns),
        "softirq_share": held.share(held.softirq_ns),
        "hardirq_share": held.share(held.hardirq_ns),
        "idle_share": held.share(held.idle_ns),
        "seen_share": held.share(held.covered_ns),
        "own_cgroup_share": held.own_share,
        "events": held.waits,
    }


def _actor(held: Held, what: str) -> str:
    holder, share = held.top
    name = task(holder.comm, holder.pid)
    match held.cause:
        case "own":
            return (
                f"{own_task(holder.pid)} held the CPU for {percent(share)} of the worst {what}: that is its own cost."
            )
        case "hog":
            special = held.special.get(holder.pid, "")
            return f"{name}{_cgroup(holder.cgroup, special)} held the CPU for {percent(share)} of the worst {what}."
        case "crew":
            comm, cgroup, tasks, together = held.crew
            return (
                f"{tasks} tasks called {quoted(comm)}{_cgroup(cgroup)} together held the CPU for {percent(together)} "
                f"of the worst {what}."
            )
        case "several":
            ranked = [
                (own_task(one.pid) if one.own else task(one.comm, one.pid), held.share(ns))
                for one, ns in list(held.holders.items())[:3]
            ]
            names = ", ".join(f"{one} {percent(part)}" for one, part in ranked)
            return f"Each wait had one main holder, but not the same: {names} of the worst {what}, then others."
        case "crowd":
            many = f"up to {held.most_tasks}" if held.most_tasks > 1 else "several"
            return (
                f"A crowd, no single task: {many} took turns on the CPU during one wait, the longest of each had "
                f"{percent(held.share(held.holder_ns))} of it.{_crowd_name(held)}"
            )
        case "softirq":
            return f"Softirqs took {percent(held.share(held.softirq_ns))} of the time of the worst {what}."
        case "hardirq":
            return f"Hard interrupts took {percent(held.share(held.hardirq_ns))} of the time of the worst {what}."
        case "idle":
            idle = f"The CPU was idle for {percent(held.share(held.idle_ns))} of the worst {what}, nobody held it: "
            if what == "delays":
                return f"{idle}it came late out of idle (halted or paused virtual CPU, deep idle state)."
            return (
                f"{idle}the tasks were throttled (CPU quota of their cgroup, limit of real-time time), or woken late "
                "(halted virtual CPU, deep idle state)."
            )
        case "unseen":
            seen = percent(held.share(held.covered_ns))
            return f"Only {seen} of the worst {what} is covered by the CPU's log of stays{_of_that(held)}."


def _of_that(held: Held) -> str:
    """Say who had the part that the log covers, which need not be who had the rest."""
    times = {"softirqs": held.softirq_ns, "hard interrupts": held.hardirq_ns, "the idle task": held.idle_ns}
    for holder, ns in list(held.holders.items())[:1]:
        times[own_task(holder.pid) if holder.own else task(holder.comm, holder.pid)] = ns
    most = max(times, key=lambda name: times[name])
    told = f"; of that, {most} had {percent(held.of_covered(times[most]))}" if times[most] else ""
    return f"{told}; who held it the rest of the time is not known"


def _look_closer(summary: Summary, held: Held) -> str:
    """What helps where the log is too short: the kind of time it covers tells what kind the rest may be."""
    if held.of_covered(held.idle_ns) >= IDLE_SHARE:
        return f"{look(summary, 'what runs')}; on a virtual machine check steal time"
    return f"{look(summary, 'what runs on this busy CPU')}; fewer runnable tasks for it"


def _crowd_name(held: Held) -> str:
    """Most crowds are many tasks of one program."""
    comm, _, tasks, share = held.crew
    of_holders = share / max(held.share(held.holder_ns), 1e-9)
    return f" The longest were mostly tasks called {quoted(comm)}." if tasks > 1 and of_holders >= 0.8 else ""


def _relation(held: Held) -> str:
    # Only meaningful when one cgroup is to blame and victims have a cgroup that can be compared.
    if held.cause not in ("hog", "crew") or not any(cgroup not in ("", "/") for (_, cgroup), _ in held.victims.items()):
        return ""
    if not (held.top[0].cgroup if held.cause == "hog" else held.crew[1]):
        return ""
    if held.own_share >= 0.5:
        return " The waiting tasks are of its own cgroup: the job slows itself."
    return " The waiting tasks are of other cgroups: a noisy neighbour."


def waiting(held: Held) -> str:
    """Return a sentence, after a space, on the tasks that waited longest."""
    sums: dict[str, int] = {}
    for (comm, _), ns in held.victims.items():
        sums[comm] = sums.get(comm, 0) + ns
    ranked = sorted(sums, key=lambda comm: -sums[comm])
    names = ", ".join(quoted(comm) for comm in ranked[:3])
    more = f" and {len(ranked) - 3} more" if len(ranked) > 3 else ""
    return f" Waiting: {names}{more}." if names else ""


def _cgroup(cgroup: str, special: str = "") -> str:
    told = "; ".join(filter(None, (special, f"cgroup {cgroup}" if cgroup else "")))
    return f" ({told})" if told else ""
