"""Functions that have no names because the kernel's records of programs were lost: what was counted stands."""

from __future__ import annotations

from tracer.analysis.finding import Finding, Severity
from tracer.analysis.summary import Summary
from tracer.units import many

__all__ = ["lost_records"]

_REASON = "programs"


def lost_records(summary: Summary) -> list[Finding]:
    """Return a caveat where any were lost: after a single one nobody knows who has become another program."""
    lost = {probe: reasons[_REASON] for probe, reasons in summary.losses.reasons.items() if reasons.get(_REASON)}
    if not lost:
        return []
    # Probes read the same records: each counts all that are lost.
    most = max(lost.values())
    return [
        Finding(
            rule="quality.records",
            topic="lost names",
            severity=Severity.NOTE,
            subject=max(lost, key=lambda probe: lost[probe]),
            what=f"Names are missing: {many(most, 'record')} of programs that start, map files or end got lost "
            f"({', '.join(sorted(lost))}; normal: none).",
            who="Functions may have no names; of their time nothing is missing for that.",
            next="the list of losses says what each reason means",
            anchor="losses",
            value=float(most),
            threshold=1.0,
            unit="1",
            values={probe: {_REASON: number} for probe, number in lost.items()},
        )
    ]
