"""The kernel's own detectors: how they are set, and what they have counted.

The settings decide whether and when the kernel panics; a recording holds what a countdown was made of. They are read
at the start and every minute, so most intervals have no rows. What a kernel lacks has no row.

Overhead: nothing runs in the kernel. The counts cost 13 µs per interval, the settings 0.3 ms once a minute (median,
pinned, on a virtual AMD EPYC).
Caveat: a setting that is changed is noticed up to a minute later.
Caveat: ``warn_count`` and ``oops_count`` came with v6.2 (and stable kernels of 2023), the other counts with v6.16.
"""

from __future__ import annotations

from tracer.probe import Column, Probe, Table

__all__ = ["PROBE"]

PROBE = Probe(
    name="detectors",
    summary="how the kernel's lockup, hang, stall and panic detectors are set, and what they have counted",
    tier="light",
    source="detectors",
    tables=(
        Table(
            "settings",
            help="sysctls and module parameters; rows at the start and every minute only",
            keys=("name",),
            gauges=("value",),
            columns=(
                Column("name", "", "of the sysctl (kernel.softlockup_panic) or the parameter (rcupdate.…)"),
                Column("value", "", "as the kernel writes it"),
            ),
        ),
        Table(
            "counts",
            help="warnings, oopses, lockups, stalls, hung tasks and taints",
            keys=("name",),
            gauges=("total",),
            counters=("new",),
            columns=(
                Column("name", "", "warn, oops, softlockup, hardlockup, rcu_stall, hung_task or taint"),
                Column("total", "", "since boot; taint: the bits, as in /proc/sys/kernel/tainted"),
                Column("new", "", "in the interval; taint: the bits that were not set before"),
            ),
        ),
    ),
)
