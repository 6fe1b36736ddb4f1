"""The summary's series and stacks for programs, in base units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracer.analysis.limits import limits
from tracer.analysis.merged import Group, Merged
from tracer.analysis.names import vector
from tracer.analysis.rows import text
from tracer.analysis.source import Source
from tracer.analysis.stacks import Stacks
from tracer.reports.sections.stacks import folded

__all__ = ["base_units", "series_entries", "stack_entries"]

STACKS = 32  # of each kind; the recording has all


def series_entries(name: tuple[str, str], merged: Merged, source: Source) -> list[dict[str, Any]]:
    """Return an entry per key that counted anything, and one without keys for all together.

    ``filters`` are those that this series is limited to.
    """
    series = f"{name[0]}.{name[1]}"
    common = {"series": series, "filters": limits(name[0], source)}
    entries = [{**common, "keys": {}, **_statistics(merged.total())}]
    for key, group in sorted(merged.groups(*merged.shape.keys).items(), key=lambda item: str(item[0])):
        keys = {column: _key(column, value) for column, value in zip(merged.shape.keys, key, strict=True)}
        entries.append({**common, "keys": keys, **_statistics(group)})
    return [entry for entry in entries if entry["count"] or not entry["keys"]]


def _statistics(group: Group) -> dict[str, Any]:
    one = group.statistics.told
    return {
        "count": one.count,
        "sum_s": one.sum_ns / 1e9,
        "p50_s": one.p50_ns / 1e9,
        "p90_s": one.p90_ns / 1e9,
        "p99_s": one.p99_ns / 1e9,
        "p999_s": one.p999_ns / 1e9,
        "max_s": one.max_ns / 1e9,
        **base_units(group.sums),
    }


def stack_entries(stacks: Stacks) -> dict[str, Any]:
    """Return the heaviest stacks; ``weight`` is in samples on the CPU, in ns off it. Frames from the outermost on.

    ``idle`` is what of that is idle waits; the heaviest, and their shares, are of the rest. ``still_blocked`` are
    threads whose block had not ended, and of those the ones in D for a second or longer.
    """
    idle = stacks.idle()
    return {
        "weight": stacks.total,
        "idle": {"weight": idle.ns, "threads": idle.threads, "kinds": idle.kinds},
        "still_blocked": {
            "threads": stacks.still.threads,
            "uninterruptible": [base_units(one._asdict()) for one in stacks.still.uninterruptible],
        },
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


def base_units(values: Mapping[str, Any]) -> dict[str, Any]:
    """Rename ``*_ns`` to ``*_s`` and scale."""
    return {
        (f"{name[:-3]}_s" if name.endswith("_ns") else name): (value / 1e9 if name.endswith("_ns") else value)
        for name, value in values.items()
    }


def _key(column: str, value: Any) -> Any:
    return vector(int(value)) if column == "vector" else text(value) if isinstance(value, (str, bytes)) else value
