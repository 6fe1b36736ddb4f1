"""Memory that runs out: how soon, and who takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracer.alerts import culprits, deadlines
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Culprit, Severity, Subject
from tracer.alerts.histories import recent, series
from tracer.alerts.rule import Rule, View
from tracer.alerts.slopes import PART, steady_fall, still_falls
from tracer.units import SECOND, duration, memory, percent
from tracer.window import Window

__all__ = ["RULES"]

_INFO, _GROWERS = ("memory", "info"), ("memory", "growers")
_SUBJECT = Subject("memory")

#: What can grow: the columns, and what to call it.
# Stacks are vmalloc memory.
_KERNEL = (
    ("slab_unreclaimable", "the kernel's objects (SUnreclaim)"),
    ("vmalloc", "the kernel's vmalloc memory"),
    ("percpu", "the kernel's per-CPU memory"),
)
_DRIVER = (("unnamed", "pages that no counter names (of drivers, of sockets)"),)
_USER = (("anon", "processes' memory"), ("shmem", "shared memory and tmpfs"), ("hugetlb", "huge pages"))


_LEFT = ("available", "swap_free")
#: Over which spans a fall is looked for, and within which time memory has to be gone for that to be told.
_SPANS = {
    limits.EXHAUSTION_SPAN_MOST_NS: limits.EXHAUSTION_WARN_NS,
    limits.EXHAUSTION_SPAN_NS: limits.EXHAUSTION_PAGE_NS,
    limits.EXHAUSTION_SPAN_NS // 2: limits.EXHAUSTION_SPAN_NS,
    limits.EXHAUSTION_SPAN_LEAST_NS: 2 * limits.EXHAUSTION_SPAN_LEAST_NS,
}


@dataclass(frozen=True)
class _Fall:
    """A steady fall of what is left: ``pace`` in bytes per second over ``span_ns``, ``left`` in bytes."""

    pace: float
    left: float
    since_ns: int
    span_ns: int

    @property
    def time_left_ns(self) -> int:
        return int(self.left / self.pace * SECOND)


def _exhaustion(view: View) -> Iterator[Condition]:
    windows, _ = recent(view, _INFO, limits.EXHAUSTION_SPAN_MOST_NS)
    fall = _fall(windows) if windows else None
    if fall is None:
        return
    kind, share, grower = _grower(windows, fall)
    severity = _how_bad(view, fall, kind, share, float(windows[-1].rows["total"][0]))
    if severity is not None:
        yield _told(view, fall, kind, grower, severity)


def _slows_down(view: View, before: Condition) -> Condition | None:
    """Return what goes on as long as memory falls at all; None when it does not, or would last for long."""
    windows, _ = recent(view, _INFO, limits.EXHAUSTION_SPAN_NS)
    if not windows:
        return None
    times, left = series(windows, _LEFT)
    pace = still_falls(times, left)
    if pace <= 0:
        return None
    fall = _Fall(pace, float(left[-1]), windows[0].end_ns, limits.EXHAUSTION_SPAN_NS)
    most_ns = limits.EXHAUSTION_PAGE_NS if before.severity is Severity.PAGE else limits.EXHAUSTION_WARN_NS
    if fall.time_left_ns >= limits.EXHAUSTION_OVER * most_ns:
        return None
    kind, _, grower = _grower(windows, fall)
    return replace(_told(view, fall, kind, grower, before.severity), since_ns=before.since_ns)


def _told(view: View, fall: _Fall, kind: str, grower: str, severity: Severity) -> Condition:
    named = _named(view, kind, fall)
    budget = deadlines.oom(view, fall.time_left_ns)
    after = "" if budget.panics_ns is not None else "; then the OOM killer ends tasks (no vm.panic_on_oom)"
    return Condition(
        _SUBJECT,
        severity,
        f"memory is gone in {duration(fall.time_left_ns)} at {memory(fall.pace)} per second: {memory(fall.left)} left, "
        f"and it goes to {grower}{f', most of all {named}' if named else ''}{after}",
        fall.since_ns,
        {"left_bytes": fall.left, "bytes_per_s": fall.pace, "time_left_s": fall.time_left_ns / SECOND},
        Culprit(context=named or grower),
        # A slope is no timer: without the panic there is nothing to count down to.
        budget.countdown(view.now_ns) if budget.panics_ns is not None else None,
    )


def _fall(windows: Sequence[Window]) -> _Fall | None:
    """Return the steady fall of what is left, over the shortest span that is long enough for it."""
    if not any(_may_fall(windows, span_ns, within_ns) for span_ns, within_ns in _SPANS.items()):
        return None
    times, left = series(windows, _LEFT)
    for span_ns in _SPANS:
        start = times >= times[-1] - span_ns / SECOND - 0.5
        covered = times[-1] - times[start][0]
        if covered < 0.9 * span_ns / SECOND:
            continue
        pace = steady_fall(times[start], left[start])
        if pace > 0:
            fall = _Fall(pace, float(left[-1]), windows[int(np.argmax(start))].end_ns, span_ns)
            if span_ns >= min(limits.EXHAUSTION_SPAN_NS, fall.time_left_ns // 2):
                return fall
    return None


def _may_fall(windows: Sequence[Window], span_ns: int, within_ns: int) -> bool:
    """Return whether the last quarter of a span falls as a slope has to that is worth telling.

    It is what ``steady_fall`` asks of each quarter, at a glance: nearly always nothing falls like that.
    """
    # A span that is covered by nine tenths will do: its quarter may begin anywhere here.
    since_ns = windows[-1].end_ns - span_ns // 4 - SECOND // 2
    first = next((n for n in range(len(windows) - 1, -1, -1) if windows[n].end_ns <= since_ns), 0)
    _, left = series(windows[first:], _LEFT)
    fallen = float(left.max() - left[-1])
    return fallen * within_ns >= PART * float(left[-1]) * 0.9 * span_ns / 4


def _grower(windows: Sequence[Window], fall: _Fall) -> tuple[str, float, str]:
    """Return whose memory grows (kernel, driver, user), its share of what is lost, and what to call it."""
    falling = [window for window in windows if window.end_ns >= fall.since_ns]
    seconds = max((falling[-1].end_ns - falling[0].end_ns) / SECOND, 1e-9)
    lost = fall.pace * seconds
    shares = {
        (kind, title): _grown(falling, column) / lost
        for kind, columns in (("kernel", _KERNEL), ("driver", _DRIVER), ("user", _USER))
        for column, title in columns
    }
    by_kind = {kind: sum(share for (each, _), share in shares.items() if each == kind) for kind, _ in shares}
    kind = max(by_kind, key=lambda each: by_kind[each])
    title = max((share, title) for (each, title), share in shares.items() if each == kind)[1]
    told = by_kind[kind] >= limits.NAMED_SHARE
    return (kind, by_kind[kind], title) if told else ("user", 0.0, "what no counter tells")


def _grown(windows: Sequence[Window], column: str) -> float:
    if column not in (windows[-1].rows.dtype.names or ()):
        return 0.0
    return max(float(windows[-1].rows[column][0]) - float(windows[0].rows[column][0]), 0.0)


def _how_bad(view: View, fall: _Fall, kind: str, share: float, total: float) -> Severity | None:
    panics = view.number("vm.panic_on_oom", 0) > 0
    if kind == "kernel" and share >= limits.KERNEL_SHARE:
        if fall.time_left_ns < limits.EXHAUSTION_PAGE_NS:
            return Severity.PAGE
        long_enough = fall.span_ns >= limits.EXHAUSTION_SPAN_MOST_NS
        return Severity.WARNING if fall.time_left_ns < limits.EXHAUSTION_WARN_NS and long_enough else None
    if fall.time_left_ns >= limits.EXHAUSTION_PAGE_NS or fall.span_ns < limits.EXHAUSTION_SPAN_NS:
        return None
    most = limits.EXHAUSTION_DRIVER_LEFT if kind == "driver" else limits.EXHAUSTION_USER_LEFT
    most = max(most, limits.EXHAUSTION_PANIC_LEFT) if panics else most
    return Severity.PAGE if fall.left < most * total else Severity.WARNING


def _named(view: View, kind: str, fall: _Fall) -> str:
    """Return the slab or the cgroup that grew most, with its pace; "" when none takes much of what goes."""
    window = view.windows.get(_GROWERS)
    if window is None:
        return ""
    what = "slab" if kind == "kernel" else "cgroup"
    rows = window.rows[window.rows["kind"] == what.encode()]
    paces = rows["grown"] / np.maximum(rows["over_ns"], 1) * SECOND
    if not len(rows) or paces.max() < limits.NAMED_SHARE * fall.pace:
        return ""
    name = culprits.text(rows["name"][int(np.argmax(paces))])
    return f"{what} {name} ({memory(float(paces.max()))} per second)"


RULES = (
    Rule(
        name="memory-exhaustion",
        title="memory runs out",
        help=f"""
What is left (MemAvailable and free swap) falls steadily, and the time until none is left follows from the slope: the
median slope of all pairs of points (Theil-Sen), provided that each quarter of the time falls at half that pace at
least. So bursts, start-ups that end, and memory that is nearly full but steady say nothing.

The slope has to last for half the time that is left, and for {duration(limits.EXHAUSTION_SPAN_LEAST_NS)} to
{duration(limits.EXHAUSTION_SPAN_NS)}.

It goes on, slower, for as long as each quarter of the last {duration(limits.EXHAUSTION_SPAN_NS)} falls at all, unless
what is left would last {limits.EXHAUSTION_OVER} times as long as the limits below.

Severity: page when none is left in {duration(limits.EXHAUSTION_PAGE_NS)} and {percent(limits.KERNEL_SHARE)} of what
goes is the kernel's own (a leak); of drivers' pages, which start-ups pin, when less than
{percent(limits.EXHAUSTION_DRIVER_LEFT)} is left as well; of processes' memory, less than
{percent(limits.EXHAUSTION_USER_LEFT)}, or {percent(limits.EXHAUSTION_PANIC_LEFT)} with `vm.panic_on_oom`. Warning
from {duration(limits.EXHAUSTION_PAGE_NS)} before the end otherwise, and for the kernel's own from
{duration(limits.EXHAUSTION_WARN_NS)}.

Countdown: the time to exhaustion, where `vm.panic_on_oom` makes it a panic. Without it tasks are killed first, and the
kernel panics only when there is none left to kill.
""",
        next="save state; end or move what grows (the slab's module, the cgroup's job) before the kernel chooses",
        judge=_exhaustion,
        goes_on=_slows_down,
        needs=(_INFO,),
        wants=(_GROWERS,),
        history=(_INFO,),
    ),
)
