"""The heaviest stacks: what CPUs executed, where tasks blocked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tracer.analysis.frames import Frame
from tracer.analysis.idle import SCHEDULER, IdleTime
from tracer.analysis.rules.stackless import stackless
from tracer.analysis.source import Source
from tracer.analysis.stacks import HeavyStack
from tracer.analysis.still import Still
from tracer.analysis.summary import Summary
from tracer.escape import printable
from tracer.reports.layout import Column
from tracer.reports.sections._section import ROWS, Section, of_filter
from tracer.units import clip, count, display_width, duration, many, percent

__all__ = ["called", "folded", "hidden", "is_scheduler", "off_cpu", "on_cpu", "still_blocked", "telling"]

_KERNEL = "_[k]"  # as flame graphs mark them


def on_cpu(summary: Summary, source: Source) -> Section | None:
    """The stacks that most samples hit."""
    title = "ON-CPU STACKS  samples of CPUs, outermost function first, _[k]: kernel"
    heavy = _heaviest(summary, "oncpu")
    weights = [count(one.weight) for one in heavy]
    return _section(title, Column("samples"), weights, heavy, source, _lacking(summary, "oncpu"))


def off_cpu(summary: Summary, source: Source) -> Section | None:
    """The stacks in which tasks spent most time off the CPU."""
    title = "OFF-CPU STACKS  time in which tasks were blocked or asleep"
    heavy = _heaviest(summary, "offcpu")
    stacks = summary.stacks.get("offcpu")
    notes = [still_blocked(stacks.still, source), hidden(stacks.idle(), shown=summary.idle)] if stacks else []
    notes += _lacking(summary, "offcpu")
    return _section(title, Column("time"), [duration(one.weight) for one in heavy], heavy, source, notes)


def still_blocked(still: Still, source: Source) -> str:
    """Name the threads that were uninterruptible at the end, and had been for long; "" for none."""
    found = still.uninterruptible
    named = ", ".join(
        f"{source.task(one.comm, one.tid, one.pid)} {'all along' if one.all_along else duration(one.blocked_ns)}"
        for one in found[:ROWS]
    )
    others = f", and {len(found) - ROWS} others" if len(found) > ROWS else ""
    return f"Uninterruptible (D) at the end, and no end was seen: {named}{others}." if found else ""


def hidden(idle: IdleTime, *, shown: bool = False) -> str:
    """Say how much of the time off the CPU is idle waits, and that they are left out unless ``shown``; "" for none."""
    if not idle.ns:
        return ""
    kinds = ", ".join(f"{name} {duration(ns)}" for name, ns in idle.kinds.items())
    of = f"{percent(idle.share)} of {duration(idle.total_ns)} off the CPU"
    threads = f" of {many(idle.threads, 'thread')}" if idle.threads else ""
    return (
        f"Idle waits{threads} are {of}: {kinds}."
        if shown
        else f"Hid {of}, idle waits{threads}: {kinds}. --idle shows them."
    )


def _heaviest(summary: Summary, probe: str) -> list[HeavyStack]:
    return summary.stacks[probe].heaviest(ROWS) if probe in summary.stacks else []


def _lacking(summary: Summary, probe: str) -> list[str]:
    return [f"{one.told}." for one in stackless(summary, probe)]


def _section(
    title: str,
    weight: Column,
    weights: Sequence[str],
    heavy: Sequence[HeavyStack],
    source: Source,
    said: Sequence[str] = (),
) -> Section | None:
    rows = [
        [cell, percent(one.share), source.task(one.comm, one.tid, one.pid)]
        for cell, one in zip(weights, heavy, strict=True)
    ]
    columns = [weight, Column("share"), Column("task", right=False, flexible=True)]
    stacks = [telling(one.frames) for one in heavy]
    notes = [note for note in said if note]
    if not rows and not notes:
        return None
    return Section(f"{title}{of_filter(source)}", columns if rows else (), rows, stacks=stacks, notes=notes)


def telling(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Return an off-CPU stack without what every blocked task ends in: the scheduler itself."""
    while len(frames) > 1 and is_scheduler(frames[-1]):
        frames = frames[:-1]
    return frames


def is_scheduler(frame: Frame) -> bool:
    """Return whether a function is one that every blocked task ends in."""
    return frame.kernel and frame.symbol in SCHEDULER


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
