"""Waits for a CPU: by CPU, by cgroup, and the longest one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracer.analysis.blame import PRIO_UNKNOWN
from tracer.analysis.names import scheduling
from tracer.analysis.rows import text
from tracer.analysis.source import Source
from tracer.analysis.statistics import NOTHING
from tracer.analysis.summary import Summary
from tracer.analysis.waits import covered_ns, is_seen, main_part
from tracer.reports.layout import Column
from tracer.reports.sections._section import QUANTILES, ROWS, Section, known, more, of_filter, quantiles, when
from tracer.units import MISSING, count, duration, percent

__all__ = ["cgroups", "run_queue", "worst_waits"]

_PARTS = {"idle_ns": "nobody: CPU idle", "softirq_ns": "softirqs", "hardirq_ns": "hard interrupts"}


def run_queue(summary: Summary, source: Source) -> Section | None:
    """Waits for a CPU: all CPUs together, then the worst ones."""
    merged = summary.table("runqueue", "wait")
    everything = merged.total().statistics if merged else NOTHING
    if merged is None or not everything.count:
        return None
    cpus = sorted(
        ((cpu, group.statistics) for (cpu,), group in merged.groups("cpu").items()),
        key=lambda item: (-known(item[1].max_ns), -known(item[1].p99_ns), item[0]),
    )
    used = [(str(cpu), one) for cpu, one in cpus if one.count]
    rows = [
        [name, count(one.count), *quantiles(one), duration(one.sum_ns)] for name, one in [("all", everything), *used]
    ]
    title = f"RUN QUEUE  time from runnable to running{of_filter(source)}"
    columns = [Column("CPU"), Column("waits"), *QUANTILES, Column("total", rank=4)]
    return Section(title, columns, rows[: ROWS + 1], more(rows[ROWS + 1 :], "CPU"))


def cgroups(summary: Summary, source: Source) -> Section | None:
    """Waits for a CPU by cgroup, those that waited longest in all first."""
    merged = summary.table("runqueue_cgroup", "wait")
    if merged is None:
        return None
    ranked = sorted(merged.groups("cgroup").items(), key=lambda item: -item[1].sum_ns)
    rows = []
    for (cgroup,), group in ranked:
        one = group.statistics
        if one.count:
            sums = [duration(one.sum_ns), count(group.sums["preempted"])]
            rows.append([text(cgroup), count(one.count), *quantiles(one), *sums])
    columns = [Column("cgroup", right=False, flexible=True, least=16, tail=True), Column("waits"), *QUANTILES]
    columns += [Column("total"), Column("preempted", rank=4)]
    title = f"RUN QUEUE BY CGROUP{of_filter(source)}"
    return Section(title, columns, rows[:ROWS], more(rows[ROWS:], "other cgroup")) if rows else None


def worst_waits(summary: Summary, source: Source) -> Section | None:
    """The longest single waits with who held the CPU."""
    worst = summary.events("runqueue", "worst")
    if worst is None or not worst.events:
        return None
    rows = [_wait(event, source) for event in worst.events[:ROWS]]
    columns = [
        Column("UTC", right=False),
        Column("waited"),
        Column("task", right=False, flexible=True, least=10),
        Column("CPU"),
        Column("of it"),
        Column("held by", right=False, flexible=True, least=10),
    ]
    return Section(f"WORST WAITS  {count(worst.count)} recorded one by one{of_filter(source)}", columns, rows)


def _wait(event: Mapping[str, Any], source: Source) -> list[str]:
    wait = int(event.get("wait_ns", 0))
    holder, ns = _holder(event, source)
    share = percent(ns / wait) if wait else MISSING
    if not is_seen(event):
        # How little is known comes first: where there is no room, the end is cut off.
        known = f"only {percent(covered_ns(event) / wait)} seen"
        holder, share = f"{known}: {holder}" if ns else known, MISSING
    cpu = str(event.get("waited_cpu", event.get("cpu", MISSING)))
    waiting = source.task(str(event.get("comm", "")), int(event.get("pid", 0)), int(event.get("tgid", 0)))
    return [when(event, source), duration(wait), waiting, cpu, share, holder]


def _holder(event: Mapping[str, Any], source: Source) -> tuple[str, int]:
    """Return what had the CPU for most of the wait, and for how long: a task, interrupts, or nothing at all."""
    part, ns = main_part(event)
    if part != "holder_ns":
        return _PARTS.get(part, MISSING), ns
    name, pid = str(event.get("holder_comm", "")), int(event.get("holder_pid", 0))
    # The last part of a cgroup's path names the service or the container.
    cgroup = str(event.get("holder_cgroup", "")).rstrip("/").rpartition("/")[2]
    special = scheduling(int(event.get("holder_prio", PRIO_UNKNOWN))).partition(",")[0]
    told = "; ".join(filter(None, (special, cgroup)))
    return source.task(name, pid, int(event.get("holder_tgid", 0))) + (f" ({told})" if told else ""), ns
