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
from tracer.analysis.merged import Group, Merged
from tracer.analysis.names import vector
from tracer.analysis.rows import text
from tracer.analysis.source import Source
from tracer.analysis.stacks import Stacks
from tracer.analysis.statistics import Statistics
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import Verdict
from tracer.reports.escape import printable
from tracer.reports.sections.stacks import folded

__all__ = ["SCHEMA", "as_dict", "dumps"]

SCHEMA = "foreshock.summary/1"
STACKS = 32  # of each kind; the recording has all


def dumps(value: Any) -> str:
    """Return JSON text: names escaped as in the text report, NaN and infinity as null."""
    return json.dumps(_clean(value), ensure_ascii=False, allow_nan=False)


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
        "series": [entry for name, merged in sorted(summary.histograms().items()) for entry in _series(name, merged)],
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
        "devices": _counters(summary, "link"),
        "rdma_ports": _counters(summary, "rdma"),
        "events": {
            f"{probe}.{table}": {
                "count": worst.count,
                "worst": [_event(event, source) for event in worst.events],
            }
            for (probe, table), worst in sorted(summary.worst.items())
        },
        "stacks": {probe: _stacks(stacks) for probe, stacks in sorted(summary.stacks.items()) if stacks.total},
        "losses": {probe: dict(reasons) for probe, reasons in sorted(summary.losses.reasons.items()) if reasons},
        "losses_not_measured": summary.losses.unmeasured,
        "cost": _cost(summary),
    }


def _source(source: Source) -> dict[str, Any]:
    return {
        "host": source.host,
        "kernel": source.kernel,
        "architecture": source.architecture,
        "boot_id": source.boot_id,
        "version": source.version,
        "cpus": source.cpus or None,
        "filters": dict(source.filters),
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


def _series(name: tuple[str, str], merged: Merged) -> list[dict[str, Any]]:
    """One entry per key that counted anything, and one without keys for all together."""
    series = f"{name[0]}.{name[1]}"
    entries = [{"series": series, "keys": {}, **_statistics(merged.total())}]
    for key, group in sorted(merged.groups(*merged.shape.keys).items(), key=lambda item: str(item[0])):
        keys = {column: _key(column, value) for column, value in zip(merged.shape.keys, key, strict=True)}
        entries.append({"series": series, "keys": keys, **_statistics(group)})
    return [entry for entry in entries if entry["count"] or not entry["keys"]]


def _statistics(group: Group) -> dict[str, Any]:
    one: Statistics = group.statistics
    return {
        "count": one.count,
        "sum_s": one.sum_ns / 1e9,
        "p50_s": one.p50_ns / 1e9,
        "p90_s": one.p90_ns / 1e9,
        "p99_s": one.p99_ns / 1e9,
        "p999_s": one.p999_ns / 1e9,
        "max_s": one.max_ns / 1e9,
        **_base_units(group.sums),
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
    return {"unix_s": source.unix_ns(event.get("time_ns", math.nan)) / 1e9, **_base_units(event)}


def _stacks(stacks: Stacks) -> dict[str, Any]:
    """The heaviest stacks; ``weight`` is in samples on the CPU, in ns off it. Frames from the outermost on."""
    return {
        "weight": stacks.total,
        "heaviest": [
            {
                "comm": one.comm,
                "pid": one.pid,
                "tid": one.tid,
                "weight": one.weight,
                "share": one.share,
                "folded": folded(one.frames),
                "frames": [
                    {"kind": "kernel" if frame.kernel else "user", "module": frame.module, "symbol": frame.symbol}
                    for frame in one.frames
                ],
            }
            for one in stacks.heaviest(STACKS)
        ],
    }


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


def _base_units(values: Mapping[str, Any]) -> dict[str, Any]:
    """Rename ``*_ns`` to ``*_s`` and scale."""
    return {
        (f"{name[:-3]}_s" if name.endswith("_ns") else name): (value / 1e9 if name.endswith("_ns") else value)
        for name, value in values.items()
    }


def _key(column: str, value: Any) -> Any:
    return vector(int(value)) if column == "vector" else text(value) if isinstance(value, (str, bytes)) else value


def _clean(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, bytes)):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item) for item in value]
    return value
