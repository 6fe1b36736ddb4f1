"""When the kernel's own detectors act, and whether they panic then: pure formulas from its settings.

Each function reads one detector's settings out of a view and returns a ``Budget``: the longest time that may pass
from the beginning of what this detector measures. Settings that a kernel lacks have the defaults of the kernels that
lack them; a detector that is off has no budget, and ``why`` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracer import units
from tracer.alerts.alert import Countdown
from tracer.alerts.rule import View
from tracer.units import SECOND

__all__ = [
    "Budget",
    "after_panic",
    "hard_lockup",
    "hung_task",
    "last_fed_ns",
    "oom",
    "rcu_stall",
    "soft_lockup",
    "watchdog_period_ns",
    "workqueue",
]

# The soft lockup detector counts in units of 2^30 ns; source: get_timestamp() in kernel/watchdog.c.
_WATCHDOG_UNIT_NS = 1 << 30
# rcu_jiffies_till_stall_check() holds rcu_cpu_stall_timeout to these; source: kernel/rcu/tree_stall.h.
_RCU_LEAST_S, _RCU_MOST_S = 3, 300
_UNKNOWN = "the kernel's settings are not known yet"


@dataclass(frozen=True)
class Budget:
    """One detector as it is set.

    ``logs_ns``: it speaks at the latest so long after what it measures began; None: it is off, or its settings are
    not known, and ``why`` says which. ``panics_ns``: it panics by then; None: it only logs. ``setting``: the settings
    that decide, as read. ``soonest_ns``: how soon it may speak; None: not before ``logs_ns``.
    """

    detector: str
    logs_ns: int | None
    panics_ns: int | None
    setting: str
    why: str = ""
    soonest_ns: int | None = None

    @property
    def remark(self) -> str:
        """What to add to a sentence where there is no countdown: ``"; no countdown: kernel.soft_watchdog=0"``."""
        return "" if self.logs_ns is not None else f"; no countdown: {self.why}"

    def countdown(self, began_ns: int) -> Countdown | None:
        """Return what happens by when, if what the detector measures began at ``began_ns``; None when it is off."""
        latest_ns = self.logs_ns if self.panics_ns is None else self.panics_ns
        if latest_ns is None:
            return None
        return Countdown(self.detector, began_ns + latest_ns, self.panics_ns is not None, self.setting)

    def quarter_ns(self, most_ns: int) -> int:
        """Return a quarter of the time until the detector may first speak, or ``most_ns`` where that is less."""
        speaks_ns = self.logs_ns if self.soonest_ns is None else self.soonest_ns
        return most_ns if speaks_ns is None else min(most_ns, speaks_ns // 4)


def watchdog_period_ns(view: View) -> int:
    """Return how often the kernel's watchdog wants to be fed. Source: set_sample_period() in kernel/watchdog.c."""
    return view.number("kernel.watchdog_thresh", 10) * 2 * SECOND // 5


def soft_lockup(view: View) -> Budget:
    """Return the soft lockup detector's budget, from when its thread was last fed.

    watchdog_timer_fn() comes every 0.4 * thresh and complains at the first time at which more than 2 * thresh units
    of 2^30 ns have passed, counted in whole ones: between 2 and 3 of them at a thresh of 1, so after 2.4 to 3.6 s;
    24 s at the default of 10. Since e700f5d1 ("watchdog: softlockup: panic when lockup
    duration exceeds N thresholds") (in v7.0) softlockup_panic may be N > 1; complaints come every 24 s, and it is the
    N-th that is long enough.
    """
    name = "soft lockup detector"
    setting = _setting(view, "kernel.softlockup_panic", "kernel.watchdog_thresh")
    off = _watchdog_off(view, "kernel.soft_watchdog")
    if off:
        return Budget(name, None, None, setting, off)
    period_ns = watchdog_period_ns(view)
    count = 2 * view.number("kernel.watchdog_thresh", 10)
    soonest_ns, logs_ns = (math.ceil(n * _WATCHDOG_UNIT_NS / period_ns) * period_ns for n in (count, count + 1))
    complaints = view.number("kernel.softlockup_panic", 0)
    panics_ns = logs_ns * complaints if complaints > 0 else None
    return Budget(name, logs_ns, panics_ns, setting, soonest_ns=soonest_ns)


def last_fed_ns(view: View, stalled_ns: int, unfed_ns: int, *, fed_ns: int = 0, idle_ns: int = 0) -> int:
    """Return when the watchdog began to count, at the latest, on a CPU that has been stalled since ``stalled_ns``.

    ``unfed_ns``: when its timer first found its thread not running, 0 if it has not come yet; ``fed_ns``: when its
    thread ran last, ``idle_ns``: until when the CPU was idle; 0 if that is not known. What ends the idle tick restarts
    the count, which begins with the next timer; source: touch_softlockup_watchdog_sched() in
    tick_nohz_update_jiffies() and tick_nohz_restart_sched_tick(), and SOFTLOCKUP_DELAY_REPORT in watchdog_timer_fn().
    """
    period_ns = watchdog_period_ns(view)
    if not unfed_ns and fed_ns > stalled_ns - period_ns:
        unfed_ns = fed_ns + period_ns
    if not unfed_ns:
        return stalled_ns + period_ns if idle_ns > stalled_ns - period_ns else stalled_ns
    return unfed_ns if idle_ns > unfed_ns - period_ns else unfed_ns - period_ns


def hard_lockup(view: View) -> Budget:
    """Return the hard lockup detector's budget, from the CPU's last timer interrupt.

    Counting cycles, it looks every thresh, and needs two looks; watching its neighbour instead (since v6.5), every
    third watchdog period of 0.4 * thresh. The settings do not tell which, so this is the longer one.
    """
    name = "hard lockup detector"
    setting = _setting(view, "kernel.hardlockup_panic", "kernel.watchdog_thresh")
    off = _watchdog_off(view, "kernel.nmi_watchdog")
    if off:
        return Budget(name, None, None, setting, off)
    logs_ns = 6 * watchdog_period_ns(view)
    return Budget(name, logs_ns, logs_ns if view.number("kernel.hardlockup_panic", 0) > 0 else None, setting)


def hung_task(view: View, blocked: int = 1) -> Budget:
    """Return khungtaskd's budget, from when the task last ran; ``blocked``: how many tasks are due at the same time.

    One scan notes the task, a later one at least a timeout after it reports: with the interval equal to the timeout
    that is between one timeout and two. Since 9544f9e6 ("hung_task: panic when there are more than N hung tasks at the
    same time") (in v6.19) hung_task_panic may be N > 1. Source: check_hung_task() in kernel/hung_task.c.
    """
    name = "hung task detector"
    setting = _setting(view, "kernel.hung_task_panic", "kernel.hung_task_timeout_secs")
    timeout = view.number("kernel.hung_task_timeout_secs", 0)
    if timeout <= 0:
        return Budget(name, None, None, setting, _lacking(view, "kernel.hung_task_timeout_secs"))
    interval = view.number("kernel.hung_task_check_interval_secs", 0)
    interval = min(interval, timeout) if interval > 0 else timeout
    soonest_ns = math.ceil(timeout / interval) * interval * SECOND
    logs_ns = interval * SECOND + soonest_ns
    needed = view.number("kernel.hung_task_panic", 0)
    return Budget(name, logs_ns, logs_ns if 0 < needed <= blocked else None, setting, soonest_ns=soonest_ns)


def rcu_stall(view: View, seen: int = 0) -> Budget:
    """Return RCU's budget, from the beginning of the grace period; ``seen``: stalls reported since boot.

    A stall is told again after three more timeouts. max_rcu_stall_to_panic = N panics with the N-th since boot.
    Source: rcu_jiffies_till_stall_check() and panic_on_rcu_stall() in kernel/rcu/tree_stall.h.
    """
    name = "RCU stall detector"
    setting = _setting(view, "kernel.panic_on_rcu_stall", "rcupdate.rcu_cpu_stall_timeout")
    if not view.settings:
        return Budget(name, None, None, setting, _UNKNOWN)
    if view.number("rcupdate.rcu_cpu_stall_suppress", 0):
        return Budget(name, None, None, setting, "rcupdate.rcu_cpu_stall_suppress=1")
    timeout = min(max(view.number("rcupdate.rcu_cpu_stall_timeout", 21), _RCU_LEAST_S), _RCU_MOST_S)
    # 3 jiffies more each time, at most 30 ms; and one for the tick that looks.
    logs_ns = timeout * SECOND + SECOND // 10
    more = max(view.number("kernel.max_rcu_stall_to_panic", 0) - 1 - seen, 0)
    panics_ns = logs_ns + more * 3 * logs_ns
    return Budget(name, logs_ns, panics_ns if view.number("kernel.panic_on_rcu_stall", 0) > 0 else None, setting)


def workqueue(view: View, seen: int = 0) -> Budget:
    """Return the workqueue watchdog's budget, from a pool's last progress; ``seen``: stalls reported since boot.

    Its timer comes every thresh and reports pools that made none for thresh. panic_on_stall = N panics with the N-th
    report since boot, panic_on_stall_time (2026) with the first after so many seconds.
    Source: wq_watchdog_timer_fn() in kernel/workqueue.c.
    """
    name = "workqueue watchdog"
    setting = _setting(view, "workqueue.panic_on_stall", "workqueue.watchdog_thresh")
    thresh = view.number("workqueue.watchdog_thresh", 0)
    if thresh <= 0:
        return Budget(name, None, None, setting, _lacking(view, "workqueue.watchdog_thresh"))
    looks = []
    reports, seconds = view.number("workqueue.panic_on_stall", 0), view.number("workqueue.panic_on_stall_time", 0)
    if reports > 0:
        looks.append(max(reports - seen, 1) + 1)
    if seconds > 0:
        looks.append(math.ceil(max(seconds, thresh) / thresh) + 1)
    return Budget(name, 2 * thresh * SECOND, min(looks) * thresh * SECOND if looks else None, setting)


def oom(view: View, left_ns: int) -> Budget:
    """Return what happens when memory is gone, ``left_ns`` from now: not a timer's budget but the slope's.

    Without vm.panic_on_oom, tasks are killed; only when none is left to kill does the kernel panic.
    """
    panics = view.number("vm.panic_on_oom", 0) > 0
    return Budget("OOM killer", left_ns, left_ns if panics else None, _setting(view, "vm.panic_on_oom"))


def after_panic(view: View) -> str:
    """Return what follows a panic: ``"reboots after 10 s"``. Source: kernel.panic; kdump comes first where loaded."""
    if view.number("kernel.kexec_crash_loaded", 0):
        return "boots the crash kernel"
    seconds = view.number("kernel.panic", 0)
    if seconds < 0:
        return "reboots at once"
    return f"reboots after {units.duration(seconds * SECOND)}" if seconds else "hangs for ever (kernel.panic=0)"


def _watchdog_off(view: View, own: str) -> str:
    """Return why a lockup detector is off; "" when it is on. A kernel without the switch has no such detector."""
    if not view.settings:
        return _UNKNOWN
    if own not in view.settings:
        return f"this kernel has no {own}"
    switches = {"kernel.watchdog": 1, "kernel.watchdog_thresh": 10, own: 0}
    return next((f"{name}=0" for name, default in switches.items() if view.number(name, default) <= 0), "")


def _lacking(view: View, name: str) -> str:
    """Return why a detector whose time is set by ``name`` is off."""
    if not view.settings:
        return _UNKNOWN
    return f"{name}={view.settings[name]}" if name in view.settings else f"this kernel has no {name}"


def _setting(view: View, *names: str) -> str:
    """Return settings as text, and the one that says what follows a panic."""
    return ", ".join(f"{name}={view.settings[name]}" for name in (*names, "kernel.panic") if name in view.settings)
