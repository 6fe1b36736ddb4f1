"""What the kernel says by tracepoint before it gives up: stalls, hangs, timeouts, kills, warnings, hardware errors.

All are rare, and told one by one as they come; a storm is counted in whole and told in part. Which of them exist
differs from kernel to kernel: the others run without those that are missing.

Overhead: nothing until one of them happens, then about 1 µs each.
Caveat: ``error_report_end`` comes after the check of panic_on_warn: where that is set, a WARN is not told before it.
Caveat: hardware errors are told only if the kernel has the drivers that ask the hardware (EDAC, AER, MCE).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.layouts import constants
from tracer.probe import Column, Events, Loss, Map, Member, Probe, Table, Tracepoint

_KNOWN = constants("precursors")

#: Kinds as people see them, by their number in C.
KINDS = {
    _KNOWN[f"PRECURSORS_{name.upper()}"]: name
    for name in (
        "rcu_stall",
        "hung_task",
        "tx_timeout",
        "oom_kill",
        "error_report",
        "memory_error",
        "machine_check",
        "pcie_error",
        "memory_failure",
        "thermal_trip",
        "iommu_fault",
    )
}

_TOLD = np.dtype(
    [
        ("time_ns", "u8"),
        ("kind", "S16"),
        ("cpu", "u4"),
        ("pid", "u4"),
        ("comm", "S16"),
        ("cgroup", "S96"),
        ("name", "S32"),
        ("text", "S48"),
        ("number", "i8"),
        ("value", "u8"),
    ]
)


def _decode(events: np.ndarray, names: Any) -> np.ndarray:
    """Turn ``struct precursors_told`` into rows."""
    rows = np.zeros(len(events), dtype=_TOLD)
    for row, event in zip(rows, events, strict=True):
        row["time_ns"], row["cpu"] = event["event"]["time_ns"], event["event"]["cpu"]
        row["kind"] = KINDS.get(int(event["what"]), "").encode()
        for name in ("pid", "comm", "name", "text", "number", "value"):
            row[name] = event[name]
        row["cgroup"] = names.cgroup_of(int(event["pid"])) if event["pid"] else b""
    return rows


def _named(rows: np.ndarray, names: Any) -> np.ndarray:
    """Put the kinds' names in place of their numbers."""
    told = np.zeros(len(rows), dtype=[("cpu", "u4"), ("kind", "S16"), ("count", "u8")])
    told["cpu"], told["count"] = rows["cpu"], rows["count"]
    told["kind"] = [KINDS.get(kind, "").encode() for kind in rows["kind"].tolist()]
    return told


PROBE = Probe(
    name="precursors",
    summary="what the kernel says by tracepoint before it gives up: stalls, timeouts, OOM kills, hardware errors",
    tier="light",
    requires=("cpustate",),
    aliases=("oomkill",),
    hooks=(
        Tracepoint("rcu:rcu_stall_warning", ("char *", "char *"), optional=True, everywhere=True),
        Tracepoint("sched:sched_process_hang", ("struct task_struct *",), optional=True, everywhere=True),
        # Since 141b6b2a (in v5.2).
        Tracepoint("net:net_dev_xmit_timeout", ("struct net_device *", "int"), optional=True, everywhere=True),
        # One argument, the pid, or two: the task and its user. The C text looks at the number.
        Tracepoint("oom:mark_victim", optional=True, everywhere=True),
        Tracepoint(
            "error_report:error_report_end",
            ("enum error_detector", "long unsigned int"),
            optional=True,
            everywhere=True,
        ),
        Tracepoint("ras:mc_event", ("unsigned int", "char *", "char *", "int"), optional=True, everywhere=True),
        Tracepoint("mce:mce_record", optional=True, everywhere=True),
        Tracepoint("ras:aer_event", ("char *", "u32", "u8"), optional=True, everywhere=True),
        Tracepoint("ras:memory_failure_event", ("long unsigned int", "int", "int"), optional=True, everywhere=True),
        Tracepoint(
            "thermal:thermal_zone_trip",
            ("struct thermal_zone_device *", "int", "enum thermal_trip_type"),
            optional=True,
            everywhere=True,
        ),
        Tracepoint("iommu:io_page_fault", ("struct device *", "long unsigned int", "int"), optional=True),
    ),
    members=(
        Member("task_struct.pid"),
        Member("task_struct.comm"),
        Member("net_device.name"),
        Member("net_device.ifindex"),
        Member("net_device.dev.parent"),
        Member("device.driver"),
        Member("device.kobj.name"),
        Member("device_driver.name"),
        Member("mce.status", optional=True),
        Member("mce.bank", optional=True),
        Member("mce.extcpu", optional=True),
        Member("thermal_zone_device.type", optional=True),
    ),
    maps=(Map("precursors_rows", "precursors_row", ("cpu", "PRECURSORS_KINDS")),),
    tables=(
        Events(
            "told",
            help="each saying of the kernel",
            layout="precursors_told",
            decode=_decode,
            columns=(
                Column("kind", "", ", ".join(KINDS.values())),
                Column("pid", "", "thread it is about (hung_task, oom_kill), else the one that ran on the CPU"),
                Column("name", "", "device, memory module, thermal zone or RCU flavour"),
                Column("text", "", "driver (tx_timeout) or the kernel's own words"),
                Column(
                    "number",
                    "",
                    "queue; detector (0 KFENCE, 1 KASAN, 2 WARN); severity (memory: 0 corrected, 1 not, 2 deferred, "
                    "3 fatal; PCIe: 0 not fatal, 1 fatal, 2 corrected); bank; trip type",
                ),
                Column("value", "", "errors, status register, address or page frame"),
            ),
        ),
        Table(
            "count",
            help="how many there were, told or not",
            map="precursors_rows",
            by=("cpu", "kind"),
            counters=("count",),
            named=_named,
            columns=(Column("count", "", "how often the kernel said so"),),
        ),
    ),
    losses=(
        Loss("suppressed", "precursors_rows", "limit.suppressed", "counted but not told one by one", harmless=True),
    ),
)
