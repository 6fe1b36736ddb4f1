"""The tables below the verdict: what each probe measured. A section without data is left out; the verdict says so."""

from __future__ import annotations

from collections.abc import Callable

from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.reports.sections._section import Section
from tracer.reports.sections.cpus import cpu_time, others, stalls
from tracer.reports.sections.interrupts import interrupts, softirq_delays, softirq_runs
from tracer.reports.sections.jobs import jobs
from tracer.reports.sections.ledger import ledger, losers
from tracer.reports.sections.network import devices, polling
from tracer.reports.sections.runqueue import cgroups, run_queue, worst_waits
from tracer.reports.sections.stacks import off_cpu, on_cpu

__all__ = ["SECTIONS", "Section", "devices", "interrupts", "losers", "worst_waits"]

SECTIONS: tuple[Callable[[Summary, Source], Section | None], ...] = (
    jobs,
    stalls,
    run_queue,
    worst_waits,
    cgroups,
    ledger,
    cpu_time,
    on_cpu,
    off_cpu,
    softirq_delays,
    softirq_runs,
    interrupts,
    polling,
    devices,
    others,
)
