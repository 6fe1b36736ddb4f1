"""Softirqs and hard interrupts: how late, how long, how often."""

from __future__ import annotations

from tracer.analysis.merged import Merged
from tracer.analysis.names import irq_vector, is_irq_vector, vector
from tracer.analysis.rows import text
from tracer.analysis.rules.hardirq import calls_of
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.reports.layout import Column
from tracer.reports.sections._section import QUANTILES, ROWS, Section, more, quantiles
from tracer.units import count, percent, rate

__all__ = ["interrupts", "softirq_delays", "softirq_runs"]


def softirq_delays(summary: Summary, source: Source) -> Section | None:
    """How late softirqs start, by vector over all CPUs."""
    rows = [row[:-1] for row in _vectors(summary.table("softirq", "delay"))]
    columns = [Column("vector", right=False), Column("raises"), *QUANTILES]
    return Section("SOFTIRQ DELAY  from the raise to the start, all CPUs together", columns, rows) if rows else None


def softirq_runs(summary: Summary, source: Source) -> Section | None:
    """How long softirqs run, by vector over all CPUs, and the share of one CPU they took."""
    rows = _vectors(summary.table("softirq", "run"))
    columns = [Column("vector", right=False), Column("runs"), *QUANTILES, Column("one CPU")]
    return Section("SOFTIRQ RUN  from start to end, without hard interrupts", columns, rows) if rows else None


def _vectors(merged: Merged | None) -> list[list[str]]:
    rows = []
    for (number,), group in sorted(merged.groups("vector").items()) if merged else ():
        one = group.statistics
        if merged and one.count:
            share = percent(one.sum_ns / merged.ns) if merged.ns else percent(float("nan"))
            rows.append([vector(int(number)), count(one.count), *quantiles(one), share])
    return rows


def interrupts(summary: Summary, source: Source) -> Section | None:
    """Interrupt lines by the time their handlers took."""
    merged = summary.table("hardirq", "run")
    if merged is None or merged.seconds <= 0:
        return None
    lines = [(key, group, *calls_of(group)) for key, group in merged.groups("irq", "name", "cpu").items()]
    rows = []
    for (irq, name, cpu), group, calls, ns, none_share in sorted(lines, key=lambda line: -line[3]):
        if calls:
            load = [count(calls), rate(calls / merged.seconds), percent(ns / 1e9 / merged.seconds)]
            row = [_line(int(irq), text(name)), str(cpu), *load, *quantiles(group.statistics), percent(none_share)]
            rows.append(row)
    columns = [
        Column("line", right=False, flexible=True, least=16),
        *(Column("CPU"), Column("calls", rank=4), Column("rate"), Column("time")),
        *(*QUANTILES, Column("none")),
    ]
    return Section("INTERRUPT LINES", columns, rows[:ROWS], more(rows[ROWS:], "quieter line")) if rows else None


def _line(irq: int, name: str) -> str:
    """Return a line as /proc/interrupts does: its number and name, the name alone for a CPU's own vector."""
    if is_irq_vector(irq):
        return name or irq_vector(irq)
    return f"{irq} {name}".rstrip() if irq >= 0 else name or "other lines"
