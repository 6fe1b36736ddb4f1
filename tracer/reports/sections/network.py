"""Network: how its devices are polled, what they carried and lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tracer.analysis.merged import Group
from tracer.analysis.names import budget_class
from tracer.analysis.rows import text
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.reports.layout import Column
from tracer.reports.sections._section import QUANTILES, ROWS, Section, more, quantiles
from tracer.units import MISSING, count, link_speed, percent, rate, throughput

__all__ = ["devices", "polling"]


def polling(summary: Summary, source: Source) -> Section | None:
    """Network polling by device, CPU and who polls: a driver, an application that busy-polls, netpoll."""
    merged = summary.table("napi", "poll")
    places: dict[tuple[str, int], list[Group]] = {}
    for (device, cpu, budget), group in merged.groups("device", "cpu", "budget").items() if merged else ():
        if group.sums["polls"]:
            name = " ".join(filter(None, (text(device), budget_class(int(budget)))))
            places.setdefault((name, int(cpu)), []).append(group)
    if merged is None or not places:
        return None
    rows = []
    ranked = {place: _together(groups) for place, groups in places.items()}
    for (name, cpu), group in sorted(ranked.items(), key=lambda item: -item[1].sums["polls"]):
        polls, full = group.sums["polls"], percent(group.sums["full"] / group.sums["polls"])
        load = [rate(polls / merged.seconds), f"{group.sums['work'] / polls:.1f}", full]
        rows.append([name, str(cpu), *load, count(group.statistics.count), *quantiles(group.statistics)])
    gaps = [replace(column, group="gap after a full poll") for column in (Column("gaps", rank=4), *QUANTILES)]
    columns = [
        Column("device", right=False, flexible=True, least=16),
        *(Column("CPU"), Column("polls"), Column("packets"), Column("full"), *gaps),
    ]
    title = "NETWORK POLLING  packets per poll, share of full polls"
    return Section(title, columns, rows[:ROWS], more(rows[ROWS:], "quieter pair"))


def _together(groups: list[Group]) -> Group:
    """Add up the budgets of one class."""
    sums = {name: sum(group.sums[name] for group in groups) for name in groups[0].sums}
    slots = np.stack([group.slots for group in groups]).sum(axis=0, dtype=np.uint64)
    return Group(slots, sum(group.sum_ns for group in groups), sums)


def devices(summary: Summary, source: Source) -> Section | None:
    """Network devices and RDMA ports by throughput."""
    rows: list[list[str]] = []
    for table, speed in (("link", "speed_mbps"), ("rdma", "rate_mbps")):
        merged = summary.table("netdev", table)
        if merged is None or merged.seconds <= 0:
            continue
        names = merged.shape.keys
        ranked = sorted(merged.groups(*names).items(), key=lambda item: -_bytes(item[1]))
        rows += [_device(key, group, merged.seconds, speed) for key, group in ranked if _bytes(group) or _drops(group)]
    columns = [
        Column("device", right=False, flexible=True),
        Column("link", right=False),
        *(Column("received"), Column("sent"), Column("rx pkts"), Column("tx pkts"), Column("lost")),
    ]
    rest = more(rows[2 * ROWS :], "quieter device")
    return Section("DEVICES  quiet ones left out", columns, rows[: 2 * ROWS], rest) if rows else None


def _device(key: tuple[Any, ...], group: Group, seconds: float, speed: str) -> list[str]:
    state = text(group.gauges.get("state") or MISSING)
    sums = group.sums
    return [
        "/".join(text(part) for part in key),
        f"{state} {link_speed(float(group.gauges.get(speed) or 0))}",
        *(throughput(sums[name] / seconds) for name in ("rx_bytes", "tx_bytes")),
        *(rate(sums[name] / seconds) for name in ("rx_packets", "tx_packets")),
        count(_drops(group)),
    ]


def _bytes(group: Group) -> int:
    return group.sums["rx_bytes"] + group.sums["tx_bytes"]


def _drops(group: Group) -> int:
    """Everything a device lost or broke."""
    names = ("rx_dropped", "rx_errors", "rx_missed", "rx_fifo", "rx_over", "tx_dropped", "tx_errors", "tx_discards")
    return sum(group.sums.get(name, 0) for name in names)
