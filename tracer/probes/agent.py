"""What foreshock itself costs this node: its programs, by the kernel's own accounting, and its process.

The kernel's accounting costs every BPF program on the node about 115 ns a run, so it is switched on for one second
a minute (``sampled_ns``), the first at the start.

Overhead: none per event; one read of /proc/self per interval.
Caveat: skipped runs are asked for every ten seconds and at the end, and told then. Before Linux 5.12 nobody counts
them: the loss ``recursion_misses`` is then absent, its column 0.
Caveat: the kernel's run times leave out the dispatch, about 50 ns per event.
"""

from __future__ import annotations

from tracer.probe import Column, Probe, Table

PROBE = Probe(
    name="agent",
    summary="what foreshock itself costs: time in its programs, CPU and memory of its process",
    tier="light",
    reader="own_cost",
    tables=(
        Table(
            "cost",
            help="per program; the row 'agent' is the process",
            keys=("program",),
            counters=("run_count", "run_ns", "sampled_ns", "recursion_misses", "cpu_ns"),
            gauges=("resident_bytes", "map_bytes"),
            columns=(
                Column("program", "", "kernel program, named for its attach point; 'agent' is the process"),
                Column("run_count", "runs", "runs while the kernel's accounting was on"),
                Column("run_ns", "ns", "time in those runs"),
                Column("sampled_ns", "ns", "for how long the accounting was on"),
                Column("recursion_misses", "runs", "runs the kernel skipped: the program was running already"),
                Column("cpu_ns", "ns", "CPU time of the process"),
                Column("resident_bytes", "B", "resident memory of the process"),
                Column("map_bytes", "B", "kernel memory of the maps"),
            ),
        ),
        Table(
            "clock",
            help="a row in an interval by whose end the wall clock had been set, or the node suspended and resumed",
            gauges=("offset_ns",),
            columns=(
                Column("offset_ns", "ns", "from then on, UTC minus the node's monotonic clock, which all times are of"),
            ),
        ),
    ),
)
