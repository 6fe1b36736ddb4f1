"""What the kernel logs, from the beginning of the trace on. The alert rules know which lines mean trouble.

Lines that processes write to /dev/kmsg are left out: the kernel never gives them its own facility. Equal lines of one
interval are one row with their number.

Overhead: nothing runs in the kernel; one system call per interval and 10 µs per line, at most 10 ms per interval.
Caveat: it needs CAP_SYSLOG where kernel.dmesg_restrict is set.
Caveat: a storm of lines is told in part (``left_out``); what the kernel overwrites meanwhile is ``lost``.
Caveat: a kernel in trouble may log late or not at all; tracepoints (precursors) do not wait for the console.
"""

from __future__ import annotations

from tracer.probe import Column, Probe, Table

PROBE = Probe(
    name="kernellog",
    summary="what the kernel logs",
    tier="light",
    source="kernellog",
    aliases=("dmesg",),
    capabilities=("syslog",),
    tables=(
        Table(
            "lines",
            help="lines that the kernel itself wrote",
            keys=("serial",),
            columns=(
                Column("time_ns", "ns", "when it was logged, or read where the log's clock has drifted too far"),
                Column("serial", "", "number of the line since boot"),
                Column("level", "", "0 emergency, 1 alert, 2 critical, 3 error, 4 warning, 5 notice, 6 info, 7 debug"),
                Column("count", "lines", "how often the same text came in the interval"),
                Column("text", "", "the line, at most 240 bytes"),
            ),
        ),
    ),
)
