"""What changed against a baseline: latencies, where CPU time went, how the nodes are set up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tracer.analysis.cpus import CpuTime, cpu_times
from tracer.analysis.names import vector
from tracer.analysis.statistics import NOTHING, Statistics
from tracer.analysis.summary import Summary
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, more
from tracer.units import MISSING, at_most, change, duration, percent, rate

__all__ = ["changed_cpus", "changed_latencies", "changed_setup", "seconds"]

#: From this share on a CPU does something else than before.
_MOVED = 0.05
_PARTS = ("tasks", "softirq", "hardirq", "idle")


def seconds(summary: Summary) -> float:
    """Return for how long a run measured."""
    seen = summary.intervals
    return max(1, seen.ns - seen.paused_ns - seen.gap_ns) / 1e9


def changed_latencies(before: Summary, now: Summary) -> Section | None:
    """Return all series, those whose p99 or maximum moved furthest first, long ones before short ones."""
    sides = [dict(_series(one)) for one in (before, now)]
    lengths = [seconds(one) for one in (before, now)]
    ranked: list[tuple[float, str, list[str]]] = []
    for name in {**sides[1], **sides[0]}:
        old, young = (side.get(name, NOTHING).told for side in sides)
        moved = max(_moved(old.p99_ns, young.p99_ns), _moved(old.max_ns, young.max_ns))
        rates = [one.count / length for one, length in zip((old, young), lengths, strict=True)]
        cells = [duration(young.p99_ns), duration(old.p99_ns), change(old.p99_ns, young.p99_ns)]
        cells += [at_most(young.max_ns), at_most(old.max_ns), change(old.max_ns, young.max_ns)]
        ranked.append((moved, name, [name, *cells, rate(rates[1]), rate(rates[0]), change(*rates)]))
    ranked.sort(key=lambda one: (-one[0], one[1]))
    columns = [Column("series", right=False, flexible=True, least=16)]
    for rank, group in enumerate(("p99", "max", "rate")):
        columns += [Column(title, rank=rank, group=group) for title in ("now", "baseline", "change")]
    rows = [row for *_, row in ranked[: 2 * ROWS]]
    rest = more(ranked[2 * ROWS :], "other series")
    return Section("WHAT CHANGED  latencies, those that changed most first", columns, rows, rest) if rows else None


def changed_cpus(before: Summary, now: Summary) -> Section | None:
    """Return the CPUs whose time is spent otherwise."""
    known = cpu_times(before)
    pairs = [(known[cpu], one) for cpu, one in cpu_times(now).items() if cpu in known]
    if not pairs:
        return None
    title = "WHAT CHANGED  CPU time, now and in the baseline"
    moved = [pair for pair in pairs if _distance(*pair) >= _MOVED]
    if not moved:
        note = f"Every CPU's time is spent as in the baseline, to {percent(_MOVED)}."
        return Section(title, (), (), notes=[note])
    moved.sort(key=lambda pair: (-_distance(*pair), pair[0].cpu))
    rows = [
        [str(young.cpu), *(percent(share) for both in zip(_shares(young), _shares(old), strict=True) for share in both)]
        for old, young in moved[:ROWS]
    ]
    columns = [Column("CPU")]
    for part in _PARTS:
        columns += [Column(which, group=part) for which in ("now", "base")]
    return Section(title, columns, rows, more(moved[ROWS:], "other CPU"))


def changed_setup(differences: Sequence[tuple[str, str, str]]) -> Section:
    """Return the settings in which two nodes differ: (name, now, baseline)."""
    title = "WHAT DIFFERS  how the nodes are set up"
    if not differences:
        return Section(title, (), (), notes=["The nodes are set up alike, as far as was recorded."])
    rows = [[name, *(value or MISSING for value in values)] for name, *values in differences]
    columns = [Column("setting", right=False, flexible=True, least=20, tail=True)]
    columns += [Column(which, right=False, flexible=True, least=10) for which in ("now", "baseline")]
    return Section(title, columns, rows[: 2 * ROWS], more(rows[2 * ROWS :], "other row"))


def _series(summary: Summary) -> Iterator[tuple[str, Statistics]]:
    for (probe, table), merged in summary.histograms().items():
        if "vector" in merged.shape.keys:
            for (number,), group in merged.groups("vector").items():
                if group.statistics.count:
                    yield f"{probe}.{table} {vector(int(number))}", group.statistics
        elif merged.total().statistics.count:
            yield f"{probe}.{table}", merged.total().statistics


def _shares(one: CpuTime) -> tuple[float, ...]:
    return one.running, one.softirq, one.hardirq, one.idle


def _moved(before: float, now: float) -> float:
    """How many times a latency doubled or halved, weighed by how many digits of microseconds it has."""
    if not (0 < before < math.inf and 0 < now < math.inf):
        return 0.0
    return abs(math.log2(now / before)) * math.log10(1 + max(before, now) / 1e3)


def _distance(one: CpuTime, other: CpuTime) -> float:
    return max(abs(mine - its) for mine, its in zip(_shares(one), _shares(other), strict=True))
