"""What to do to see the code: record stacks; where they were recorded, look there, or look longer."""

from __future__ import annotations

from tracer.analysis.summary import Summary

__all__ = ["has_stacks", "look", "sample_again"]


def has_stacks(summary: Summary) -> bool:
    """Return whether stacks on the CPU were recorded."""
    return "oncpu" in summary.stacks and summary.stacks["oncpu"].total > 0


def look(summary: Summary, shows: str) -> str:
    """Return where the code is to be found; ``shows`` says what there is to see ("the code")."""
    if not has_stacks(summary):
        return f"foreshock record --deep shows {shows}"
    return _unfiltered(summary) or f"the stacks on the CPU show {shows}, if a sample hit it; else record longer"


def sample_again(summary: Summary, tid: int) -> str:
    """Return what to do to see the code of a thread of which there is no sample."""
    if not has_stacks(summary):
        return "foreshock record --deep shows what it does"
    often = f"none of {summary.source.sample_hz:.0f} samples a second hit it"
    return _unfiltered(summary) or f"{often}: record longer, or sample it more often: perf record -F 999 -g -t {tid}"


def _unfiltered(summary: Summary) -> str:
    """Stacks of some tasks only say nothing of the others."""
    only = " and ".join(f"{name} {value}" for name, value in summary.source.task_filters)
    return f"stacks were taken of {only} only: foreshock record --deep without that shows all" if only else ""
