"""Did a CPU stop making progress, or its watchdog come close to saying so?"""

from __future__ import annotations

from tracer.analysis import thresholds
from tracer.analysis.finding import Finding, Outcome, Severity, missing, outcome
from tracer.analysis.names import cpu_list, task
from tracer.analysis.summary import Summary
from tracer.units import at_most, count, duration

__all__ = ["stalls", "watchdog_feed"]


def stalls(summary: Summary) -> Outcome:
    """Judge ``cpustall.stalls``: every stall is worth a sentence, one per CPU."""
    table = summary.table("cpustall", "stall")
    worst = summary.events("cpustall", "stalls")
    if table is None and worst is None:
        return missing("stalled CPUs: cpustall was not recorded")
    by_cpu: dict[int, list[dict[str, object]]] = {}
    for event in worst.events if worst else []:
        if int(event["duration_ns"]) >= thresholds.STALL_NS:
            by_cpu.setdefault(int(event["cpu"]), []).append(event)
    findings = [_stall(cpu, events) for cpu, events in sorted(by_cpu.items())]
    return outcome(findings, "stalled CPUs", "none", f"none over {duration(thresholds.STALL_NS)}")


def watchdog_feed(summary: Summary) -> Outcome:
    """Judge ``cpustall.feed``: the delay that the kernel's soft lockup detector panics on."""
    table = summary.table("cpustall", "feed")
    if table is None:
        return missing("the watchdog's delay: cpustall was not recorded")
    cpus = {int(cpu): group.statistics for (cpu,), group in table.groups("cpu").items()}
    late = [cpu for cpu, one in cpus.items() if one.max_ns > thresholds.FEED_WORST_NS]
    everything = table.total().statistics
    if not everything.count:
        return missing("the watchdog's delay: it was not fed while recording (it is every 4 s, or switched off)")
    allowed = f"under {duration(thresholds.FEED_WORST_NS)}"
    if not late:
        return outcome([], "watchdog's delay", at_most(everything.max_ns), allowed)
    worst_ns = max(cpus[cpu].max_ns for cpu in late)
    finding = Finding(
        rule="cpustall.feed",
        severity=Severity.CRITICAL if worst_ns > thresholds.FEED_CRITICAL_NS else Severity.WARNING,
        subject=cpu_list(late),
        what=(
            f"{cpu_list(late)}: the kernel's watchdog was fed {at_most(worst_ns)} late (normal: {allowed}; at "
            "about 24 s the kernel reports a soft lockup and, if told to, panics)."
        ),
        who="Its thread has the highest priority: only interrupts or code that cannot be preempted hold it up.",
        next="see stalls and softirqs of that CPU; foreshock record --deep shows the code",
        anchor="watchdog",
        value=worst_ns / 1e9,
        threshold=thresholds.FEED_WORST_NS / 1e9,
        unit="s",
        values={"cpus": late},
    )
    return Outcome(findings=(finding,))


def _stall(cpu: int, events: list[dict[str, object]]) -> Finding:
    first = events[0]
    longest = float(str(first["duration_ns"]))
    again = f", {count(len(events))} times" if len(events) > 1 else ""
    context = str(first.get("context", "") or "")
    during = f" in {context}" if context and not context.isdigit() else ""
    comm, pid = str(first.get("comm", "")), int(str(first.get("pid", 0)))
    return Finding(
        rule="cpustall.stall",
        severity=Severity.CRITICAL,
        subject=f"CPU {cpu}",
        what=(
            f"CPU {cpu}: made no progress for {duration(longest)}{again}{during} (normal: under "
            f"{duration(thresholds.STALL_NS)}; the kernel calls it a soft lockup at about 24 s)."
        ),
        who=f"{task(comm, pid)} was on the CPU." if comm or pid else "",
        next="save work on this node; foreshock record --deep shows the code, the kernel log the panic settings",
        anchor="stalls",
        value=longest / 1e9,
        threshold=thresholds.STALL_NS / 1e9,
        unit="s",
        values={"cpu": cpu, "comm": comm, "pid": pid, "context": context, "stalls": len(events)},
    )
