"""Memory that runs out, and what the kernel does about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracer.alerts import culprits, deadlines
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Culprit, Severity, Subject
from tracer.alerts.rule import Rule, View
from tracer.alerts.slopes import steady_fall
from tracer.units import duration, many, memory, percent, rate
from tracer.window import Window

__all__ = ["RULES"]

_SECOND = 1_000_000_000
_INFO, _EFFORT, _GROWERS = ("memory", "info"), ("memory", "effort"), ("memory", "growers")
_SUBJECT = Subject("memory")

#: What can grow: the columns, and what to call it.
_KERNEL = (
    ("slab_unreclaimable", "the kernel's objects (SUnreclaim)"),
    ("vmalloc", "the kernel's vmalloc memory"),
    ("percpu", "the kernel's per-CPU memory"),
    ("kernel_stack", "kernel stacks"),
)
_DRIVER = (("unnamed", "pages that no counter names (of drivers, of sockets)"),)
_USER = (("anon", "processes' memory"), ("shmem", "shared memory and tmpfs"), ("hugetlb", "huge pages"))

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Fall:
    """A steady fall of what is left: ``pace`` in bytes per second over ``span_ns``, ``left`` in bytes."""

    pace: float
    left: float
    since_ns: int
    span_ns: int

    @property
    def time_left_ns(self) -> int:
        return int(self.left / self.pace * _SECOND)


def _exhaustion(view: View) -> Iterator[Condition]:
    windows, _ = _recent(view, _INFO, limits.EXHAUSTION_SPAN_MOST_NS)
    fall = _fall(windows) if windows else None
    if fall is None:
        return
    kind, share, grower = _grower(windows, fall)
    severity = _how_bad(view, fall, kind, share, float(windows[-1].rows["total"][0]))
    if severity is None:
        return
    named = _named(view, kind, fall)
    budget = deadlines.oom(view, fall.time_left_ns)
    after = "" if budget.panics_ns is not None else "; then the OOM killer ends tasks (no vm.panic_on_oom)"
    yield Condition(
        _SUBJECT,
        severity,
        f"memory is gone in {duration(fall.time_left_ns)} at {memory(fall.pace)} per second: {memory(fall.left)} left, "
        f"and it goes to {grower}{f', most of all {named}' if named else ''}{after}",
        fall.since_ns,
        {"left_bytes": fall.left, "bytes_per_s": fall.pace, "time_left_s": fall.time_left_ns / _SECOND},
        Culprit(context=named or grower),
        # A slope is no timer: without the panic there is nothing to count down to.
        budget.countdown(view.now_ns) if budget.panics_ns is not None else None,
    )


def _fall(windows: Sequence[Window]) -> _Fall | None:
    """Return the steady fall of what is left, over the shortest span that is long enough for it."""
    times, left = _series(windows, ("available", "swap_free"))
    for span_ns in (
        limits.EXHAUSTION_SPAN_MOST_NS,
        limits.EXHAUSTION_SPAN_NS,
        limits.EXHAUSTION_SPAN_NS // 2,
        limits.EXHAUSTION_SPAN_LEAST_NS,
    ):
        start = times >= times[-1] - span_ns / _SECOND - 0.5
        covered = times[-1] - times[start][0]
        if covered < 0.9 * span_ns / _SECOND:
            continue
        pace = steady_fall(times[start], left[start])
        if pace > 0:
            fall = _Fall(pace, float(left[-1]), windows[int(np.argmax(start))].end_ns, span_ns)
            if span_ns >= min(limits.EXHAUSTION_SPAN_NS, fall.time_left_ns // 2):
                return fall
    return None


def _grower(windows: Sequence[Window], fall: _Fall) -> tuple[str, float, str]:
    """Return whose memory grows (kernel, driver, user), its share of what is lost, and what to call it."""
    recent = [window for window in windows if window.end_ns >= fall.since_ns]
    seconds = max((recent[-1].end_ns - recent[0].end_ns) / _SECOND, 1e-9)
    lost = fall.pace * seconds
    shares = {
        (kind, title): _grown(recent, column) / lost
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
    paces = rows["grown"] / np.maximum(rows["over_ns"], 1) * _SECOND
    if not len(rows) or paces.max() < limits.NAMED_SHARE * fall.pace:
        return ""
    name = culprits.text(rows["name"][int(np.argmax(paces))])
    return f"{what} {name} ({memory(float(paces.max()))} per second)"


def _reclaim(view: View) -> Iterator[Condition]:
    windows, seconds = _recent(view, _EFFORT, limits.RECLAIM_SPAN_NS)
    if seconds < 0.9 * limits.RECLAIM_SPAN_NS / _SECOND:
        return
    stalls = _total(windows, "allocation_stalls") / seconds
    some, full = (_total(windows, name) / (seconds * _SECOND) for name in ("some_ns", "full_ns"))
    measured = "some_ns" in (windows[-1].rows.dtype.names or ())
    if measured and (stalls < limits.RECLAIM_STALLS or some < limits.RECLAIM_SOME):
        return
    if not measured and stalls < limits.RECLAIM_STALLS_ALONE:
        return
    waits = f"; tasks wait for memory {percent(some)} of the time, all of them {percent(full)}" if measured else ""
    yield Condition(
        _SUBJECT,
        Severity.PAGE if full >= limits.RECLAIM_FULL else Severity.WARNING,
        f"{rate(stalls)} allocations have to free memory first{waits}",
        windows[0].start_ns,
        {"stalls_per_s": stalls, "some_share": some, "full_share": full},
    )


def _oom(view: View) -> Iterator[Condition]:
    windows, _ = _recent(view, _EFFORT, limits.RECENT_NS)
    killing = [window for window in windows if _total([window], "oom_kills")]
    info = view.windows.get(_INFO)
    if not killing:
        return
    kills = int(_total(killing, "oom_kills"))
    known = info is not None and len(info.rows) > 0
    total, left = (float(info.rows[name][0]) if known and info else 0.0 for name in ("total", "available"))
    stalled = _total(killing, "allocation_stalls") > 0
    whole_node = stalled and left < limits.OOM_LEFT * total
    if whole_node:
        severity = Severity.PAGE if kills >= limits.OOM_KILLS_PAGE else Severity.WARNING
    else:
        severity = Severity.INFO
    whose = "the node is out of memory" if whole_node else "a cgroup reached its limit"
    deadly = " (vm.panic_on_oom=2 panics on these)" if view.number("vm.panic_on_oom", 0) == 2 else ""
    yield Condition(
        _SUBJECT,
        severity,
        f"{many(kills, 'task')} killed for lack of memory in the last minute: {whose}{deadly}, {memory(left)} left",
        killing[0].start_ns,
        {"kills": kills, "left_bytes": left},
    )


def _recent(view: View, table: tuple[str, str], span_ns: int) -> tuple[list[Window], float]:
    """Return the windows with rows of the last ``span_ns``, and how many seconds they cover together."""
    first_ns = view.now_ns - span_ns - _SECOND // 2
    windows = [window for window in view.history.get(table, ()) if len(window.rows) and window.start_ns >= first_ns]
    return windows, sum(window.seconds for window in windows)


def _total(windows: Sequence[Window], column: str) -> float:
    return float(sum(int(window.rows[column][0]) for window in windows if column in (window.rows.dtype.names or ())))


def _series(windows: Sequence[Window], columns: tuple[str, ...]) -> tuple[_Floats, _Floats]:
    """Return the times in s and the sums of some columns, those that this kernel has."""
    ends = np.array([window.end_ns for window in windows], "f8") / _SECOND
    sums = [sum(float(w.rows[name][0]) for name in columns if name in (w.rows.dtype.names or ())) for w in windows]
    return ends, np.array(sums)


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

Severity: page when none is left in {duration(limits.EXHAUSTION_PAGE_NS)} and {percent(limits.KERNEL_SHARE)} of what
goes is the kernel's own (a leak); of drivers' pages, which start-ups pin, when less than
{percent(limits.EXHAUSTION_DRIVER_LEFT)} is left as well; of processes' memory, less than
{percent(limits.EXHAUSTION_USER_LEFT)}, or {percent(limits.EXHAUSTION_PANIC_LEFT)} with `vm.panic_on_oom`. Warning
until then, and for the kernel's own from {duration(limits.EXHAUSTION_WARN_NS)} before the end.

Countdown: the time to exhaustion, where `vm.panic_on_oom` makes it a panic. Without it tasks are killed first, and the
kernel panics only when there is none left to kill.
""",
        next="save state; end or move what grows (the slab's module, the cgroup's job) before the kernel chooses",
        judge=_exhaustion,
        needs=(_INFO,),
        wants=(_GROWERS,),
        history=(_INFO,),
    ),
    Rule(
        name="reclaim-storm",
        title="memory has to be freed before it can be used",
        help=f"""
Allocations of the whole node stop to free memory first, and tasks wait for it: everything is slow, and the OOM killer
is next. A page cache full of files is no storm, nor is a cgroup at its own limit.

Severity: warning from {limits.RECLAIM_STALLS} such allocations a second together with {percent(limits.RECLAIM_SOME)}
of the time in which some task waits (PSI; without it, {limits.RECLAIM_STALLS_ALONE} a second), over
{duration(limits.RECLAIM_SPAN_NS)}; page when all tasks wait for {percent(limits.RECLAIM_FULL)} of it.
""",
        next="end or move what took the memory; foreshock top shows the cgroups, /proc/meminfo the rest",
        judge=_reclaim,
        needs=(_EFFORT,),
        history=(_EFFORT,),
    ),
    Rule(
        name="oom-kill",
        title="tasks are killed for lack of memory",
        help=f"""
The OOM killer has ended tasks in the last minute. With more than {percent(limits.OOM_LEFT)} of the node's memory left
it was a cgroup's own limit.

Severity: info for a cgroup's limit, warning for the node's memory, page from {limits.OOM_KILLS_PAGE} kills in a minute.

Countdown: none; with `vm.panic_on_oom=1` the node would have panicked instead of the first kill of its own.
""",
        next="find the victims in the kernel log (dmesg), and what filled the memory; restart what was killed",
        judge=_oom,
        needs=(_EFFORT,),
        wants=(_INFO,),
        history=(_EFFORT,),
        keep_ns=limits.RECENT_NS,
    ),
)
