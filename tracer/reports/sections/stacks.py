"""The heaviest stacks: what CPUs executed, where tasks blocked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tracer.analysis.source import Source
from tracer.analysis.stacks import Frame, HeavyStack
from tracer.analysis.summary import Summary
from tracer.escape import printable
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, of_filter
from tracer.units import clip, count, display_width, duration, percent

__all__ = ["called", "folded", "is_scheduler", "off_cpu", "on_cpu", "telling"]

_KERNEL = "_[k]"  # as flame graphs mark them
_SCHEDULER = ("schedule", "__schedule")


def on_cpu(summary: Summary, source: Source) -> Section | None:
    """The stacks that most samples hit."""
    title = "ON-CPU STACKS  samples of CPUs, outermost function first, _[k]: kernel"
    heavy = _heaviest(summary, "oncpu")
    return _section(title, Column("samples"), [count(one.weight) for one in heavy], heavy, source)


def off_cpu(summary: Summary, source: Source) -> Section | None:
    """The stacks in which tasks spent most time off the CPU."""
    title = "OFF-CPU STACKS  time in which tasks were blocked or asleep"
    heavy = _heaviest(summary, "offcpu")
    return _section(title, Column("time"), [duration(one.weight) for one in heavy], heavy, source)


def _heaviest(summary: Summary, probe: str) -> list[HeavyStack]:
    return summary.stacks[probe].heaviest(ROWS) if probe in summary.stacks else []


def _section(
    title: str, weight: Column, weights: Sequence[str], heavy: Sequence[HeavyStack], source: Source
) -> Section | None:
    rows = [
        [cell, percent(one.share), source.task(one.comm, one.tid, one.pid)]
        for cell, one in zip(weights, heavy, strict=True)
    ]
    columns = [weight, Column("share"), Column("task", right=False, flexible=True)]
    stacks = [telling(one.frames) for one in heavy]
    return Section(f"{title}{of_filter(source)}", columns, rows, stacks=stacks) if rows else None


def telling(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Return an off-CPU stack without what every blocked task ends in: the scheduler itself."""
    while len(frames) > 1 and is_scheduler(frames[-1]):
        frames = frames[:-1]
    return frames


def is_scheduler(frame: Frame) -> bool:
    """Return whether a function is one that every blocked task ends in."""
    return frame.kernel and frame.symbol in _SCHEDULER


def folded(frames: Sequence[Frame], width: int = 0) -> str:
    """Return a stack as one printable line, outermost function first, of at most ``width`` cells (0: any length).

    What doesn't fit goes from the middle: the first function says what the task is, the last ones what it does.
    """
    if not frames:
        return "no stack"[: width or None]
    names = [called(frame) for frame in frames]
    whole = ";".join(names)
    if not width or display_width(whole) <= width:
        return whole
    inner: list[str] = []
    for name in reversed(names[1:]):
        if display_width(";".join((names[0], "…", name, *inner))) > width:
            break
        inner.insert(0, name)
    return ";".join((names[0], "…", *inner)) if inner else clip(f"…;{names[-1]}", width)


@lru_cache(maxsize=1 << 16)
def called(frame: Frame) -> str:
    """Return a function's name, printable, the kernel's marked."""
    # ; ends a function's name in a folded stack.
    name = printable(frame.symbol or frame.module or "?").replace(";", ":")
    return f"{name}{_KERNEL}" if frame.kernel else name
