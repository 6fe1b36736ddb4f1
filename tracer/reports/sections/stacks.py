"""The heaviest stacks: what CPUs executed, where tasks blocked."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.analysis.source import Source
from tracer.analysis.stacks import Frame
from tracer.analysis.summary import Summary
from tracer.reports.escape import printable
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, of_filter
from tracer.units import clip, count, display_width, duration, percent

__all__ = ["folded", "off_cpu", "on_cpu"]

_KERNEL = "_[k]"  # as flame graphs mark them


def on_cpu(summary: Summary, source: Source) -> Section | None:
    """The stacks that most samples hit."""
    return _heaviest(
        "oncpu",
        "ON-CPU STACKS  samples of CPUs, outermost function first, _[k]: kernel",
        "samples",
        summary,
        source,
    )


def off_cpu(summary: Summary, source: Source) -> Section | None:
    """The stacks in which tasks spent most time off the CPU."""
    return _heaviest("offcpu", "OFF-CPU STACKS  time in which tasks were blocked or asleep", "time", summary, source)


def _heaviest(probe: str, title: str, weight: str, summary: Summary, source: Source) -> Section | None:
    stacks = summary.stacks.get(probe)
    heavy = stacks.heaviest(ROWS) if stacks else []
    if not heavy:
        return None
    shown = duration if weight == "time" else count
    rows = [[shown(one.weight), percent(one.share), source.task(one.comm, one.tid, one.pid)] for one in heavy]
    columns = [Column(weight), Column("share"), Column("task", right=False, flexible=True)]
    return Section(f"{title}{of_filter(source)}", columns, rows, stacks=[one.frames for one in heavy])


def folded(frames: Sequence[Frame], width: int = 0) -> str:
    """Return a stack as one printable line, outermost function first, of at most ``width`` cells (0: any length).

    What doesn't fit goes from the middle: the first function says what the task is, the last ones what it does.
    """
    if not frames:
        return "no stack"[: width or None]
    names = [_name(frame) for frame in frames]
    whole = ";".join(names)
    if not width or display_width(whole) <= width:
        return whole
    inner: list[str] = []
    for name in reversed(names[1:]):
        if display_width(";".join((names[0], "…", name, *inner))) > width:
            break
        inner.insert(0, name)
    return ";".join((names[0], "…", *inner)) if inner else clip(f"…;{names[-1]}", width)


def _name(frame: Frame) -> str:
    # ; ends a function's name in a folded stack.
    name = printable(frame.symbol or frame.module or "?").replace(";", ":")
    return f"{name}{_KERNEL}" if frame.kernel else name
