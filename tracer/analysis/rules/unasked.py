"""Why a question could not be asked: its probe was not recorded."""

from __future__ import annotations

from tracer.analysis.finding import Outcome, missing
from tracer.analysis.summary import Summary
from tracer.probes import all_probes

__all__ = ["not_recorded"]

_LIMITS = {"pid": "a process", "cgroup": "a cgroup"}


def not_recorded(question: str, probe: str, summary: Summary) -> Outcome:
    """Return the question that ``probe`` would have answered, with the reason why it does not."""
    return missing(f"{question}: {_reason(probe, summary)}")


def _reason(probe: str, summary: Summary) -> str:
    source = summary.source
    if refusal := dict(source.refused).get(probe):
        return f"{probe} could not start: {refusal}"
    # Imported probes read their layouts: only where a filter makes that necessary.
    for name, value in source.task_filters:
        if name not in all_probes()[probe].filters:
            return f"can't be limited to {_LIMITS[name]} ({name} {value})"
    return f"{probe} was not recorded"
