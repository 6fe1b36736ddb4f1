"""agent: the cost of foreshock itself is known; every probe tells what it lost."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.probes import all_probes
from tracer.selftest import Check, Evidence
from tracer.units import duration, memory


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge that cost and losses are there: no number is known beforehand."""
    rows = evidence.opening[("agent", "cost")].rows
    programs = rows[rows["run_count"] > 0]
    runs, run_ns = int(programs["run_count"].sum()), int(programs["run_ns"].sum())
    process = rows[rows["program"] == b"agent"]
    resident = int(process["resident_bytes"].max()) if len(process) else 0
    each = duration(run_ns / runs) if runs else "unknown"
    yield Check.of(
        runs > 0 and resident > 0,
        f"{runs:,} runs of {each} each; process {memory(resident)}",
        "both known",
    )
    scene = evidence["hog"]
    told = {(probe, reason) for (probe, _), window in scene.windows.items() for reason in window.losses}
    declared = {(name, loss.reason) for name in evidence.probes for loss in all_probes()[name].losses}
    silent = sorted({name for name, _ in declared - told})
    known = f"all {len(declared)} declared kinds of losses"
    yield Check.of(not silent, f"silent on losses: {', '.join(silent)}" if silent else f"{known} are watched", known)
