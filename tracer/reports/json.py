"""The summary for programs: everything the text says, in base units (seconds, bytes), under stable names.

Keys are added, never renamed or removed; a change of meaning raises ``schema``. What was not measured is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tracer.analysis.cost import own_cost
from tracer.analysis.cpus import cpu_times
from tracer.analysis.finding import Finding
from tracer.analysis.jobs import Member
from tracer.analysis.rows import text
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import Verdict
from tracer.escape import printable
from tracer.reports.jsonledger import ledger_entries
from tracer.reports.jsonseries import base_units, series_entries, stack_entries

__all__ = ["SCHEMA", "as_dict", "dumps"]

SCHEMA = "foreshock.summary/1"
#: Number.MAX_SAFE_INTEGER: from the next one on, whole numbers look alike as doubles.
_MOST_EXACT = (1 << 53) - 1


def dumps(value: Any, *, rounded: bool = False) -> str:
    """Return JSON text: names escaped as in the text report, NaN and infinity as null.

    A whole number that JavaScript and jq would round is a string of its digits, unless it may be ``rounded``.
    """
    return json.dumps(_clean(value, math.inf if rounded else _MOST_EXACT), ensure_ascii=False, allow_nan=False)


def as_dict(summary: Summary, verdict: Verdict, source: Source) -> dict[str, Any]:
    """Return the summary as a tree; ``dumps`` makes it safe and valid."""
    return {
        "schema": SCHEMA,
        "source": _source(source),
        "time": _time(summary, source),
        "verdict": {
            "headline": verdict.headline,
            "severity": verdict.severity.name.lower() if verdict.severity else None,
            "findings": [_finding(finding) for finding in verdict.findings],
            "normal": [
                {"question": one.question, "measured": one.measured, "limit": one.limit} for one in verdict.normal
            ],
            "not_seen": list(verdict.missing),
        },
        "jobs": [_member(one, source) for one in source.jobs.members()],
        "series": [
            entry
            for name, merged in sorted(summary.histograms().items())
            for entry in series_entries(name, merged, source)
        ],
        "cpus": [
            {
                "cpu": one.cpu,
                "running": one.running,
                "idle": one.idle,
                "softirq": one.softirq,
                "hardirq": one.hardirq,
                "accounted_s": one.accounted_ns / 1e9,
            }
            for one in cpu_times(summary).values()
        ],
        "ledger": ledger_entries(summary, source),
        "devices": _counters(summary, "link"),
        "rdma_ports": _counters(summary, "rdma"),
        "events": {
            f"{probe}.{table}": {
                "count": worst.count,
                "worst": [_event(event, source) for event in worst.events],
            }
            for (probe, table), worst in sorted(summary.worst.items())
        },
        "stacks": {probe: stack_entries(stacks) for probe, stacks in sorted(summary.stacks.items()) if stacks.total},
        "losses": {probe: dict(reasons) for probe, reasons in sorted(summary.losses.reasons.items()) if reasons},
        "losses_not_measured": summary.losses.unmeasured,
        "cost": _cost(summary),
    }


def _member(one: Member, source: Source) -> dict[str, Any]:
    party = one.party
    numbers = {"rank": one.rank, "local_rank": one.local_rank, "world_size": party.world_size, "node": party.node}
    names = {"job": party.job, "step": party.step, "pod": party.pod, "namespace": party.namespace}
    return {
        **{name: number if number >= 0 else None for name, number in numbers.items()},
        **{name: value or None for name, value in (*names.items(), ("container", party.container))},
        "pid": one.pid,
        "comm": one.comm,
        "cgroup": one.cgroup,
        "began_unix_s": source.unix_ns(one.began_ns) / 1e9,
        "seen_unix_s": source.unix_ns(one.seen_ns) / 1e9,
        "ended": one.ended,
    }


def _source(source: Source) -> dict[str, Any]:
    return {
        "host": source.host,
        "kernel": source.kernel,
        "architecture": source.architecture,
        "boot_id": source.boot_id,
        "version": source.version,
        "cpus": source.cpus or None,
        "command": list(source.command),
        "filters": dict(source.filters),
        "labels": dict(source.labels),
        "refused_probes": dict(source.refused),
        "missing": [{"probe": probe, "what": what} for probe, what in source.missing],
    }


def _time(summary: Summary, source: Source) -> dict[str, Any]:
    seen = summary.intervals
    return {
        "start_unix_s": source.unix_ns(seen.start_ns) / 1e9,
        "end_unix_s": source.unix_ns(seen.end_ns) / 1e9,
        "seconds": seen.ns / 1e9,
        "intervals": seen.count,
        "interval_s": seen.typical_ns / 1e9,
        "late_intervals": seen.late,
        "paused_intervals": seen.paused,
        "paused_s": seen.paused_ns / 1e9,
        "gaps": seen.gaps,
        "gap_s": seen.gap_ns / 1e9,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "topic": finding.topic,
        "severity": finding.severity.name.lower(),
        "subject": finding.subject,
        "what": finding.what,
        "who": finding.who,
        "next": finding.next,
        "anchor": finding.anchor,
        "value": finding.value,
        "threshold": finding.threshold,
        "unit": finding.unit,
        "values": dict(finding.values),
    }


def _counters(summary: Summary, table: str) -> list[dict[str, Any]]:
    merged = summary.table("netdev", table)
    if merged is None:
        return []
    return [
        {
            **{column: text(value) for column, value in zip(merged.shape.keys, key, strict=True)},
            **group.gauges,
            "seconds": merged.seconds,
            **group.sums,
        }
        for key, group in merged.groups(*merged.shape.keys).items()
    ]


def _event(event: Mapping[str, Any], source: Source) -> dict[str, Any]:
    return {"unix_s": source.unix_ns(event.get("time_ns", math.nan)) / 1e9, **base_units(event)}


def _cost(summary: Summary) -> dict[str, Any] | None:
    cost = own_cost(summary)
    if cost is None:
        return None
    return {
        "program_cpu_share": cost.program_share,
        "agent_cpu_share": cost.agent_share,
        "resident_bytes": cost.resident_bytes,
        "map_bytes": cost.map_bytes,
        "programs": [
            {
                "program": one.program,
                "run_count": one.run_count,
                "run_s": one.run_ns / 1e9,
                "sampled_s": one.sampled_ns / 1e9,
                "misses": one.misses,
            }
            for one in cost.programs
        ],
    }


def _clean(value: Any, most: float) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, bytes)):
        return printable(value)
    if isinstance(value, int):
        return value if -most <= value <= most else str(value)
    if isinstance(value, Mapping):
        return {printable(str(key)): _clean(item, most) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item, most) for item in value]
    return value
