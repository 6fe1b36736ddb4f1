"""Why a question could not be asked: its probe was not recorded."""

from __future__ import annotations

from tracer.analysis.finding import Outcome, missing
from tracer.analysis.limits import limits
from tracer.analysis.summary import Summary

__all__ = ["not_recorded"]

_LIMITS = {"pid": "a process", "cgroup": "a cgroup"}


def not_recorded(question: str, probe: str, summary: Summary) -> Outcome:
    """Return the question that ``probe`` would have answered, with the reason why it does not."""
    return missing(f"{question}: {_reason(probe, summary)}")


def _reason(probe: str, summary: Summary) -> str:
    source = summary.source
    if refusal := dict(source.refused).get(probe):
        return f"{probe} could not start: {refusal}"
    applied = limits(probe, source)
    filters = dict(source.filters)
    for name, what in _LIMITS.items():
        if name in filters and name not in applied:
            return f"can't be limited to {what} ({name} {filters[name]})"
    return f"{probe} was not recorded"
