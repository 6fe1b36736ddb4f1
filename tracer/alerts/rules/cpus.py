"""CPUs that make no progress, and tasks that do not get one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer import histogram
from tracer.alerts import culprits, deadlines
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Countdown, Severity, Subject
from tracer.alerts.deadlines import Budget
from tracer.alerts.rule import Rule, View
from tracer.units import at_most, duration, many
from tracer.window import Window

__all__ = ["RULES", "STUCK", "is_ksoftirqd", "stuck_cpus"]

_STALLS, _ENDED = ("cpustall", "stalls"), ("cpustall", "stall")
_OPEN, _FEED = ("cpustall", "open"), ("cpustall", "feed")
#: A stall is told so often while it lasts.
_AGAIN_NS = 1_000_000_000


def _soft_lockup(view: View) -> Iterator[Condition]:
    told = _latest(view.windows.get(_STALLS))
    still = _open(view.windows[_OPEN], b"stall", b"softirq")
    if not told and not still:
        return
    least_ns = deadlines.soft_lockup(view).quarter_ns(limits.STALL_WARN_NS)
    for cpu in sorted(told.keys() | still.keys()):
        row, rows = told.get(cpu), still.get(cpu, [])
        began = [int(row["since_ns"])] if row is not None else []
        since_ns = min([*began, *(since for since, _ in rows)])
        stalled_ns = view.windows[_OPEN].end_ns - since_ns if rows else int(told[cpu]["duration_ns"])
        if stalled_ns >= least_ns:
            yield _stalled(view, cpu, since_ns, stalled_ns, row, rows)


def _stalled(
    view: View,
    cpu: int,
    since_ns: int,
    stalled_ns: int,
    row: np.void | None,
    rows: list[tuple[int, np.void]],
) -> Condition:
    budget = deadlines.soft_lockup(view)
    # The kernel side's kind "stall" has no context; "softirq" has.
    culprit = culprits.of_stall(row, view) if row is not None else culprits.of_open(rows[-1][1])
    unfed_ns = int(row["time_ns"] - row["feed_ns"]) if row is not None and row["feed_ns"] else 0
    countdown, remark = _countdown(view, budget, cpu, since_ns, stalled_ns, unfed_ns, _before(row, rows, since_ns))
    place = culprits.where(culprit, view, row)
    summary = f"CPU {cpu} has made no progress for {duration(stalled_ns)}{f': {place}' if place else ''}{remark}"
    numbers = {"stalled_s": stalled_ns / 1e9}
    if unfed_ns:
        numbers["unfed_s"] = max(view.now_ns - unfed_ns, 0) / 1e9
    page = stalled_ns >= budget.quarter_ns(limits.STALL_PAGE_NS)
    severity = Severity.PAGE if page else Severity.WARNING
    return Condition(Subject("cpu", str(cpu)), severity, summary, since_ns, numbers, culprit, countdown)


def _countdown(
    view: View, budget: Budget, cpu: int, since_ns: int, stalled_ns: int, unfed_ns: int, before: dict[str, int]
) -> tuple[Countdown | None, str]:
    if not _watched(view.settings.get("kernel.watchdog_cpumask", ""), cpu):
        return None, "; no countdown: the kernel's watchdog leaves this CPU out (kernel.watchdog_cpumask)"
    countdown = budget.countdown(deadlines.last_fed_ns(view, since_ns, unfed_ns, **before))
    number, longest_ns = _ended(view, cpu, since_ns)
    # Not where the watchdog has gone unfed since before this stall, and not when it gets late.
    as_before = not 0 < unfed_ns < since_ns and stalled_ns <= longest_ns + _AGAIN_NS
    if countdown and number and as_before and stalled_ns < (budget.logs_ns or 0) // 2:
        others = f"{many(number, 'other')} in the last 10 min ended"
        return None, f"; no countdown yet: {others}, after {duration(longest_ns)} and less"
    return countdown, budget.remark


def _before(row: np.void | None, rows: list[tuple[int, np.void]], since_ns: int) -> dict[str, int]:
    """Return when the CPU was last idle and its watchdog last fed, as far as that is known."""
    told = row if row is not None else rows[-1][1]
    known = rows[-1][1] if rows and "fed_ns" in (rows[-1][1].dtype.names or ()) else None
    fed_ns, idle_ns = (int(known[name]) if known is not None else 0 for name in ("fed_ns", "idle_ns"))
    # In an interrupt over the idle task it has just been.
    return {"fed_ns": fed_ns, "idle_ns": idle_ns if int(told["pid"]) else since_ns}


def _ended(view: View, cpu: int, since_ns: int) -> tuple[int, int]:
    """Return how many stalls of this CPU were told before, and how long the longest had lasted when last told."""
    lasted: dict[int, int] = {}
    for window in view.history.get(_STALLS, ()):
        for row in window.rows[(window.rows["cpu"] == cpu) & (window.rows["time_ns"] < since_ns)]:
            began_ns = int(row["since_ns"])
            lasted[began_ns] = max(lasted.get(began_ns, 0), int(row["duration_ns"]))
    return len(lasted), max(lasted.values(), default=0)


def _hard_lockup(view: View) -> Iterator[Condition]:
    budget = deadlines.hard_lockup(view)
    window = view.windows[_OPEN]
    for cpu, rows in _open(window, b"heartbeat", b"hardirq").items():
        since_ns, row = min(rows, key=lambda each: each[0])
        stuck_ns = window.end_ns - since_ns
        if stuck_ns < budget.quarter_ns(limits.HARD_LOCKUP_NS):
            continue
        culprit = culprits.of_open(row)
        on = f": {culprit.context}, {culprit.task} was running" if culprit.task else f": {culprit.context}"
        yield Condition(
            Subject("cpu", str(cpu)),
            Severity.PAGE,
            f"CPU {cpu} has taken no interrupt for {duration(stuck_ns)}{on}{budget.remark}",
            since_ns,
            {"stuck_s": stuck_ns / 1e9},
            culprit,
            budget.countdown(since_ns),
        )


def _watchdog_unfed(view: View) -> Iterator[Condition]:
    window = view.windows[_FEED]
    for row in _reaching(window, limits.UNFED_NS):
        late_ns, cpu = float(histogram.max_ns(row["slots"])), int(row["cpu"])
        budget = deadlines.soft_lockup(view)
        allowed = f"; it complains at {duration(budget.logs_ns)} without it" if budget.logs_ns else ""
        yield Condition(
            Subject("cpu", str(cpu)),
            Severity.WARNING,
            f"CPU {cpu}: the kernel's watchdog waited {at_most(late_ns)} for its thread{allowed}{budget.remark}",
            window.start_ns,
            {"late_s": late_ns / 1e9},
        )


def _starved(view: View) -> Iterator[Condition]:
    window, stuck = view.windows[_OPEN], stuck_cpus(view)
    for cpu, rows in _open(window, b"runnable").items():
        # The softirqs' thread has a rule of its own.
        waiting = sorted((each for each in rows if not is_ksoftirqd(each[1])), key=lambda each: each[0])
        if not waiting or cpu in stuck:
            continue
        since_ns, row = waiting[0]
        waited_ns = window.end_ns - since_ns
        if waited_ns < limits.STARVED_WARN_NS:
            continue
        more = f" ({many(len(waiting) - 1, 'other')} as well)" if len(waiting) > 1 else ""
        yield Condition(
            Subject("cpu", str(cpu)),
            Severity.PAGE if waited_ns >= limits.STARVED_PAGE_NS else Severity.WARNING,
            f"CPU {cpu}: {culprits.task(row)} has been ready for {duration(waited_ns)} and does not run{more}",
            since_ns,
            {"waited_s": waited_ns / 1e9, "tasks": len(waiting)},
        )


#: What ``stuck_cpus`` looks at.
STUCK = (_OPEN, _STALLS, _ENDED)


def stuck_cpus(view: View) -> set[int]:
    """Return the CPUs that make no progress or have just made none: what waits there is told as that."""
    open_rows = view.windows[_OPEN].rows
    found = set(open_rows["cpu"][open_rows["kind"] != b"runnable"].tolist())
    if _STALLS in view.windows:
        found.update(view.windows[_STALLS].rows["cpu"].tolist())
    if _ENDED in view.windows:
        found.update(int(row["cpu"]) for row in _reaching(view.windows[_ENDED], limits.STALL_WARN_NS))
    return found


def _reaching(window: Window, threshold_ns: int) -> np.ndarray:
    """Return the rows whose histogram holds such a value."""
    rows = window.rows
    return rows[histogram.reaches(rows["slots"], threshold_ns)] if len(rows) else rows


def is_ksoftirqd(row: np.void) -> bool:
    """Return whether a row of ``cpustall.open`` is about the CPU's own softirq thread."""
    return bytes(row["comm"]) == b"ksoftirqd/%d" % int(row["cpu"])


def _latest(window: Window | None) -> dict[int, np.void]:
    """Return the latest row of ``cpustall.stalls`` by CPU."""
    rows = sorted(window.rows, key=lambda row: int(row["time_ns"])) if window is not None else []
    return {int(row["cpu"]): row for row in rows}


def _open(window: Window, *kinds: bytes) -> dict[int, list[tuple[int, np.void]]]:
    """Return the rows of some kinds of ``cpustall.open`` by CPU, each with when it began by the kernel's record."""
    found: dict[int, list[tuple[int, np.void]]] = {}
    if not len(window.rows):
        return found
    for row in window.rows[np.isin(window.rows["kind"], kinds)]:
        # An age is the window's end less the kernel's time: this is the same in whichever process.
        found.setdefault(int(row["cpu"]), []).append((window.end_ns - int(row["age_ns"]), row))
    return found


def _watched(mask: str, cpu: int) -> bool:
    """Return whether a list like ``"0-3,8"`` has a CPU; one that can't be read has all."""
    for part in filter(None, mask.split(",")):
        first, _, last = part.partition("-")
        try:
            if int(first) <= cpu <= int(last or first):
                return True
        except ValueError:
            return True
    return not mask


RULES = (
    Rule(
        name="soft-lockup",
        title="CPU makes no progress",
        help=f"""
Kernel code holds a CPU and lets nobody else in: a softirq that does not end, or a task that cannot be preempted while
others are due. A program that computes or polls in user mode never looks like this.

Severity: warning from {duration(limits.STALL_WARN_NS)}; page from {duration(limits.STALL_PAGE_NS)}, or a quarter of
the kernel's own budget where that is shorter: 0.6 s with a `kernel.watchdog_thresh` of 1 that was set before the agent
began.

Countdown: the kernel's soft lockup detector acts 2.4 times `kernel.watchdog_thresh` (24 s) after its thread last ran
on that CPU, or, where the CPU has been idle since, after the watchdog's next timer, up to 4 s later; it panics if
`kernel.softlockup_panic` is set (N > 1: after N times as long). Something may touch the watchdog meanwhile, so it may
also be later. Where stalls of the same CPU have ended by themselves in the last 10 min, there is none until this one
lasts longer than they did, or for half of the kernel's time; one that was told is taken back then.
""",
        next="stop new work on this node and save state elsewhere; the named module or driver is the first suspect",
        judge=_soft_lockup,
        needs=(_OPEN,),
        wants=(_STALLS,),
        history=(_STALLS,),
        fast=True,
    ),
    Rule(
        name="hard-lockup",
        title="CPU takes no interrupts",
        help=f"""
A busy CPU has not taken a timer interrupt, as seen from another: interrupts are off there, or a handler does not end.
A paused virtual CPU looks the same.

Severity: page from {duration(limits.HARD_LOCKUP_NS)}, or a quarter of the kernel's own budget where that is shorter.

Countdown: the kernel's hard lockup detector acts at most 2.4 times `kernel.watchdog_thresh` (24 s) after the last
interrupt; it panics if `kernel.hardlockup_panic` is set. In most virtual machines it is off (`kernel.nmi_watchdog`).
""",
        next="stop new work on this node and save state elsewhere; of a virtual machine, ask its host first",
        judge=_hard_lockup,
        needs=(_OPEN,),
        fast=True,
    ),
    Rule(
        name="watchdog-unfed",
        title="the kernel's watchdog was fed late",
        help=f"""
The thread that feeds the soft lockup detector has the highest priority there is, and still came late. It has come
since: a stall that goes on is a soft-lockup.

Severity: warning from {duration(limits.UNFED_NS)}.
""",
        next="look what held this CPU then: foreshock record --deep, softirqs and stalls of this CPU",
        judge=_watchdog_unfed,
        needs=(_FEED,),
        keep_ns=limits.RECENT_NS,
    ),
    Rule(
        name="runnable-starved",
        title="a ready task does not run",
        help=f"""
A task has been ready and has not run: a real-time task that never sleeps, or a CPU quota that is far too small. When
it is the kernel's own thread that waits, RCU and softirqs stop with it.

Severity: warning from {duration(limits.STARVED_WARN_NS)}, page from {duration(limits.STARVED_PAGE_NS)}.
""",
        next="look for real-time tasks on this CPU (ps -eLo cls,rtprio,psr,pid,comm) and for its cgroups' cpu.max",
        judge=_starved,
        needs=(_OPEN,),
        wants=(_STALLS, _ENDED),
    ),
)
