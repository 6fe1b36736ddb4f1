"""The tables below the verdict: what each probe measured. A section without data is left out; the verdict says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracer.analysis.cpus import cpu_times
from tracer.analysis.merged import Group
from tracer.analysis.names import task, vector
from tracer.analysis.rows import text
from tracer.analysis.rules.hardirq import calls_of, line_name
from tracer.analysis.source import Source
from tracer.analysis.statistics import NOTHING, Statistics
from tracer.analysis.summary import Summary
from tracer.reports.layout import Column
from tracer.units import MISSING, at_most, count, duration, link_speed, moment, percent, rate, throughput

__all__ = ["SECTIONS", "Section", "drops"]

ROWS = 8  # the worst of a kind; the rest is counted, and in the JSON
_QUANTILES = [Column("p50"), Column("p90"), Column("p99"), Column("p99.9"), Column("max")]


@dataclass(frozen=True)
class Section:
    """A titled table; ``more`` says what was left out."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    more: str = ""


def run_queue(summary: Summary, source: Source) -> Section | None:
    """Waits for a CPU: all CPUs together, then the worst ones."""
    merged = summary.table("runqueue", "wait")
    everything = merged.total().statistics if merged else NOTHING
    if merged is None or not everything.count:
        return None
    cpus = sorted(
        ((cpu, group.statistics) for (cpu,), group in merged.groups("cpu").items()),
        key=lambda item: (-_known(item[1].max_ns), -_known(item[1].p99_ns), item[0]),
    )
    used = [(str(cpu), one) for cpu, one in cpus if one.count]
    rows = [
        [name, count(one.count), *_quantiles(one), duration(one.sum_ns)] for name, one in [("all", everything), *used]
    ]
    columns = [Column("CPU"), Column("waits"), *_QUANTILES, Column("total")]
    return Section(
        "RUN QUEUE  time from runnable to running", columns, rows[: ROWS + 1], _more(rows[ROWS + 1 :], "CPUs")
    )


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
            quantiles = [duration(one.p50_ns), duration(one.p99_ns), at_most(one.max_ns)]
            rows.append(
                [text(cgroup), count(one.count), *quantiles, duration(one.sum_ns), count(group.sums["preempted"])]
            )
    columns = [Column("cgroup", right=False, flexible=True, least=12), Column("waits")]
    columns += [Column("p50"), Column("p99"), Column("max"), Column("total"), Column("preempted")]
    more = _more(rows[ROWS:], "other cgroups")
    return Section("RUN QUEUE BY CGROUP", columns, rows[:ROWS], more) if rows else None


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
    return Section(f"WORST WAITS  {count(worst.count)} recorded one by one", columns, rows)


def softirqs(summary: Summary, source: Source) -> Section | None:
    """Delay and run time by vector, over all CPUs."""
    delay, run = summary.table("softirq", "delay"), summary.table("softirq", "run")
    if delay is None and run is None:
        return None
    late = {key: group.statistics for (key,), group in delay.groups("vector").items()} if delay else {}
    ran = {key: group.statistics for (key,), group in run.groups("vector").items()} if run else {}
    numbers = [key for key in sorted({*late, *ran}) if late.get(key, NOTHING).count or ran.get(key, NOTHING).count]
    rows = [_vector(key, late.get(key, NOTHING), ran.get(key, NOTHING), summary) for key in numbers]
    columns = [
        Column("vector", right=False),
        Column("runs"),
        *(Column("late p50"), Column("p99"), Column("max")),
        *(Column("run p99"), Column("max"), Column("time")),
    ]
    return Section("SOFTIRQS  how late they start, how long they run, time of one CPU", columns, rows) if rows else None


def cpu_time(summary: Summary, source: Source) -> Section | None:
    """Where CPU time went, the busiest first."""
    cpus = sorted(cpu_times(summary).values(), key=lambda one: (-one.busy, one.cpu))
    if not cpus:
        return None
    rows = [
        [str(one.cpu), *(percent(part) for part in (one.busy, one.running, one.softirq, one.hardirq, one.idle))]
        for one in cpus
    ]
    columns = [Column("CPU"), Column("busy"), Column("tasks"), Column("softirq"), Column("hardirq"), Column("idle")]
    return Section("CPU TIME", columns, rows[:ROWS], _more(rows[ROWS:], "less busy CPUs"))


def interrupts(summary: Summary, source: Source) -> Section | None:
    """Interrupt lines by the time their handlers took."""
    merged = summary.table("hardirq", "run")
    if merged is None or merged.seconds <= 0:
        return None
    lines = [(key, group, *calls_of(group)) for key, group in merged.groups("irq", "name", "cpu").items()]
    rows = []
    for (irq, name, cpu), group, calls, ns, none_share in sorted(lines, key=lambda line: -line[3]):
        one = group.statistics
        if calls:
            rows.append(
                [line_name(int(irq), text(name)), str(cpu), rate(calls / merged.seconds)]
                + [percent(ns / 1e9 / merged.seconds), duration(one.p99_ns), at_most(one.max_ns), percent(none_share)]
            )
    columns = [
        Column("line", right=False, flexible=True, least=12),
        *(Column("CPU"), Column("rate"), Column("time"), Column("p99"), Column("max"), Column("none")),
    ]
    return Section("INTERRUPT LINES", columns, rows[:ROWS], _more(rows[ROWS:], "quieter lines")) if rows else None


def polling(summary: Summary, source: Source) -> Section | None:
    """Network polling by device and CPU."""
    merged = summary.table("napi", "poll")
    groups = merged.groups("device", "cpu") if merged else {}
    ranked = sorted(((key, group) for key, group in groups.items() if group.sums["polls"]), key=_polls, reverse=True)
    if merged is None or not ranked:
        return None
    rows = []
    for (device, cpu), group in ranked:
        polls, one = group.sums["polls"], group.statistics
        rows.append(
            [text(device), str(cpu), rate(polls / merged.seconds), f"{group.sums['work'] / polls:.1f}"]
            + [percent(group.sums["full"] / polls), duration(one.p99_ns), at_most(one.max_ns)]
        )
    columns = [
        Column("device", right=False, flexible=True),
        *(Column("CPU"), Column("polls"), Column("packets"), Column("full"), Column("gap p99"), Column("max")),
    ]
    return Section(
        "NETWORK POLLING  packets per poll, full polls, gaps after those",
        columns,
        rows[:ROWS],
        _more(rows[ROWS:], "quieter pairs"),
    )


def devices(summary: Summary, source: Source) -> Section | None:
    """Network devices and RDMA ports by throughput."""
    rows: list[list[str]] = []
    for table, speed in (("link", "speed_mbps"), ("rdma", "rate_mbps")):
        merged = summary.table("netdev", table)
        if merged is None or merged.seconds <= 0:
            continue
        names = merged.shape.keys
        ranked = sorted(merged.groups(*names).items(), key=lambda item: -_bytes(item[1]))
        rows += [_device(key, group, merged.seconds, speed) for key, group in ranked if _bytes(group) or drops(group)]
    columns = [
        Column("device", right=False, flexible=True),
        Column("link", right=False),
        *(Column("received"), Column("sent"), Column("rx pkts"), Column("tx pkts"), Column("lost")),
    ]
    more = _more(rows[2 * ROWS :], "quieter devices")
    return Section("DEVICES  quiet ones left out", columns, rows[: 2 * ROWS], more) if rows else None


def stalls(summary: Summary, source: Source) -> Section | None:
    """CPUs that made no progress."""
    worst = summary.events("cpustall", "stalls")
    if worst is None or not worst.events:
        return None
    rows = [
        [_when(event, source), duration(event["duration_ns"]), str(event["cpu"]), _task(event, "comm", "pid")]
        for event in worst.events[:ROWS]
    ]
    columns = [Column("UTC", right=False), Column("lasted"), Column("CPU"), Column("task", right=False, flexible=True)]
    return Section("STALLS  CPUs without progress", columns, rows, _more(worst.events[ROWS:], "shorter ones"))


def others(summary: Summary, source: Source) -> Section | None:
    """Histograms that have no section of their own, also of probes newer than this code."""
    known = {("runqueue", "wait"), ("softirq", "delay"), ("softirq", "run"), ("hardirq", "run"), ("napi", "poll")}
    known |= {("runqueue_cgroup", "wait")}
    rows = []
    for (probe, name), merged in sorted(summary.histograms().items()):
        one = merged.total().statistics
        if (probe, name) not in known and one.count:
            rows.append([f"{probe}.{name}", count(one.count), *_quantiles(one)])
    columns = [Column("series", right=False, flexible=True), Column("count"), *_QUANTILES]
    return Section("OTHER SERIES  all CPUs together", columns, rows) if rows else None


SECTIONS: tuple[Callable[[Summary, Source], Section | None], ...] = (
    stalls,
    run_queue,
    worst_waits,
    cgroups,
    cpu_time,
    softirqs,
    interrupts,
    polling,
    devices,
    others,
)


def drops(group: Group) -> int:
    """Return everything a device lost or broke."""
    names = ("rx_dropped", "rx_errors", "rx_missed", "rx_fifo", "rx_over", "tx_dropped", "tx_errors", "tx_discards")
    return sum(group.sums.get(name, 0) for name in names)


def _quantiles(one: Statistics) -> list[str]:
    return [*(duration(ns) for ns in (one.p50_ns, one.p90_ns, one.p99_ns, one.p999_ns)), at_most(one.max_ns)]


def _vector(number: int, late: Statistics, ran: Statistics, summary: Summary) -> list[str]:
    table = summary.table("softirq", "run")
    share = ran.sum_ns / table.ns if table and table.ns else float("nan")
    return [
        vector(int(number)),
        count(max(late.count, ran.count)),
        *(duration(late.p50_ns), duration(late.p99_ns), at_most(late.max_ns)),
        *(duration(ran.p99_ns), at_most(ran.max_ns), percent(share)),
    ]


def _wait(event: dict[str, Any], source: Source) -> list[str]:
    wait = int(event.get("wait_ns", 0))
    share = int(event.get("holder_ns", 0)) / wait if wait else float("nan")
    cpu = str(event.get("waited_cpu", event.get("cpu", MISSING)))
    holder = _task(event, "holder_comm", "holder_pid") if event.get("holder_ns") else MISSING
    # The last part of a cgroup's path names the service or the container.
    cgroup = str(event.get("holder_cgroup", "")).rstrip("/").rpartition("/")[2]
    where = f" ({cgroup})" if cgroup else ""
    return [_when(event, source), duration(wait), _task(event, "comm", "pid"), cpu, percent(share), holder + where]


def _device(key: tuple[Any, ...], group: Group, seconds: float, speed: str) -> list[str]:
    state = text(group.gauges.get("state") or MISSING)
    sums = group.sums
    return [
        "/".join(text(part) for part in key),
        f"{state} {link_speed(float(group.gauges.get(speed) or 0))}",
        *(throughput(sums[name] / seconds) for name in ("rx_bytes", "tx_bytes")),
        *(rate(sums[name] / seconds) for name in ("rx_packets", "tx_packets")),
        count(drops(group)),
    ]


def _bytes(group: Group) -> int:
    return group.sums["rx_bytes"] + group.sums["tx_bytes"]


def _polls(item: tuple[tuple[Any, ...], Group]) -> int:
    return item[1].sums["polls"]


def _when(event: dict[str, Any], source: Source) -> str:
    return moment(source.unix_ns(event.get("time_ns", float("nan"))), date=False).removesuffix(" UTC")


def _task(event: dict[str, Any], comm: str, pid: str) -> str:
    return task(str(event.get(comm, "")), int(event.get(pid, 0)))


def _known(ns: float) -> float:
    return ns if ns == ns else -1.0


def _more(rest: Sequence[object], what: str) -> str:
    return f"{len(rest)} {what} not shown" if rest else ""
