"""When rules speak. The only copy: rules and docs/alerts.md, which is made of them, use these values.

Where the kernel has a budget of its own, a rule speaks at no later than a quarter of that, or at these where earlier.
"""

from __future__ import annotations

from typing import Final

from tracer.units import SECOND

__all__ = [
    "EXHAUSTION_DRIVER_LEFT",
    "EXHAUSTION_OVER",
    "EXHAUSTION_PAGE_NS",
    "EXHAUSTION_PANIC_LEFT",
    "EXHAUSTION_SPAN_LEAST_NS",
    "EXHAUSTION_SPAN_MOST_NS",
    "EXHAUSTION_SPAN_NS",
    "EXHAUSTION_USER_LEFT",
    "EXHAUSTION_WARN_NS",
    "HARD_LOCKUP_NS",
    "KERNEL_SHARE",
    "LIMIT_NS",
    "LIMIT_SHARE",
    "NAMED_SHARE",
    "NAPI_BUDGET",
    "NAPI_FULL",
    "NAPI_LEAST_POLLS",
    "OOM_KILLS_PAGE",
    "OOM_LEFT",
    "PACE_LEAST",
    "PACE_LEAST_NS",
    "RECENT_NS",
    "RECLAIM_FULL",
    "RECLAIM_SOME",
    "RECLAIM_STALLS",
    "RECLAIM_STALLS_ALONE",
    "RECLAIM_SPAN_NS",
    "SOFTIRQ_PAGE_NS",
    "SOFTIRQ_WARN_NS",
    "STARVED_PAGE_NS",
    "STARVED_WARN_NS",
    "STALL_PAGE_NS",
    "STALL_WARN_NS",
    "STORM_PAGE",
    "STORM_WARN",
    "UNFED_NS",
    "BLOCKED_WARN_NS",
    "CORRECTED_SPAN_NS",
    "CORRECTED_WARN",
    "HUNG_WARN_NS",
    "LONG_WORK_INFO_NS",
    "LONG_WORK_WARN_NS",
    "POOL_WARN_NS",
    "RCU_HELD_WAIT_NS",
    "RCU_WARN_NS",
    "TX_TIMEOUTS_PAGE",
    "TX_TIMEOUTS_SPAN_NS",
]

_MINUTE: Final = 60 * SECOND

# The kernel side tells a stall when it is 1 s old (CPUSTALL_THRESHOLD_NS); its own detector acts at 24 s.
STALL_WARN_NS: Final = 1 * SECOND
STALL_PAGE_NS: Final = 5 * SECOND
# A quarter of the 10 s between two looks of the NMI watchdog.
HARD_LOCKUP_NS: Final = 5 * SECOND // 2
# The watchdog's thread has the highest priority there is: on a sound CPU it comes within a millisecond.
UNFED_NS: Final = 1 * SECOND

# Real-time throttling gives others 50 ms of every second; a tiny CPU quota makes a group wait for a second or two.
STARVED_WARN_NS: Final = 5 * SECOND
STARVED_PAGE_NS: Final = 20 * SECOND

# Drivers' transmit watchdogs speak at 5 s; ksoftirqd shares the CPU fairly, tenths of a second are load.
SOFTIRQ_WARN_NS: Final = 1 * SECOND
SOFTIRQ_PAGE_NS: Final = 5 * SECOND

# A queue whose polls are all full has had more to do than the CPU can do, for as long as that lasts.
NAPI_FULL: Final = 0.95
NAPI_LEAST_POLLS: Final = 100
# Drivers poll with 64, a few with 16; busy-polling applications with 8 and netpoll with 0 are not behind.
NAPI_BUDGET: Final = 16

# Of one CPU, in hard interrupts. A busy node spends a few percent; a line that stormed took all of one CPU for 20 s
# before the soft lockup (kernel commit e9a9292e).
STORM_WARN: Final = 0.50
STORM_PAGE: Final = 0.90

# Memory is gone within this time, if it goes on like that.
EXHAUSTION_PAGE_NS: Final = 10 * _MINUTE
EXHAUSTION_WARN_NS: Final = 60 * _MINUTE
# What was told goes on until that would take so many times as long.
EXHAUSTION_OVER: Final = 2
# A slope has to last for half the time that is left, within these: a fast leak is told before a start-up's allocations
# would be, and those end.
EXHAUSTION_SPAN_LEAST_NS: Final = 15 * SECOND
EXHAUSTION_SPAN_NS: Final = 60 * SECOND
EXHAUSTION_SPAN_MOST_NS: Final = 120 * SECOND
# From this share of what goes, the kernel's own objects are the cause: nothing but a leak takes those steadily.
KERNEL_SHARE: Final = 0.5
# Less is not called the cause of anything.
NAMED_SHARE: Final = 0.25
# Otherwise a page needs little left as well, for start-ups fill memory steadily, too: of drivers' pages (pinned by
# device drivers), and of processes' memory, of which jobs leave a tenth and less on purpose. With vm.panic_on_oom the
# node dies of those: sooner then.
EXHAUSTION_DRIVER_LEFT: Final = 0.50
EXHAUSTION_USER_LEFT: Final = 0.05
EXHAUSTION_PANIC_LEFT: Final = 0.50

# Over this span: allocations a second that had to reclaim first, and the share of time in which some or all tasks
# waited for memory (PSI). Streaming files through a full page cache shows neither.
RECLAIM_SPAN_NS: Final = 8 * SECOND
RECLAIM_STALLS: Final = 100
RECLAIM_STALLS_ALONE: Final = 1000
RECLAIM_SOME: Final = 0.20
RECLAIM_FULL: Final = 0.40

# A kill with more than this left is a cgroup's limit, which is a job's own affair.
OOM_LEFT: Final = 0.05
OOM_KILLS_PAGE: Final = 3

# What merely happens is told for so long.
RECENT_NS: Final = _MINUTE
# Of warn_limit and oops_limit; or so long before they are reached, at the pace of so many in so much time at least.
LIMIT_SHARE: Final = 0.25
LIMIT_NS: Final = 10 * _MINUTE
PACE_LEAST: Final = 5
PACE_LEAST_NS: Final = 4 * SECOND

# A quarter of khungtaskd's 120 s, of RCU's 21 s, of the workqueue watchdog's 30 s.
HUNG_WARN_NS: Final = 30 * SECOND
RCU_WARN_NS: Final = 5 * SECOND
# A grace period takes some 10 ms: one of this age, beside a CPU that is held up, waits for that.
RCU_HELD_WAIT_NS: Final = SECOND // 4
POOL_WARN_NS: Final = 15 * SECOND // 2
# Killable sleeps end in no panic; a file server that restarts takes tens of seconds.
BLOCKED_WARN_NS: Final = _MINUTE
# A work that writes back a full page cache to a slow drive takes a minute or two.
LONG_WORK_INFO_NS: Final = 2 * _MINUTE
LONG_WORK_WARN_NS: Final = 10 * _MINUTE

# One reset is cheap. Adapters that were reset a few times in minutes took the node down (mptcp#60: igb, hard lockup).
TX_TIMEOUTS_PAGE: Final = 3
TX_TIMEOUTS_SPAN_NS: Final = 10 * _MINUTE
# Single corrected errors are what correction is for.
CORRECTED_WARN: Final = 10
CORRECTED_SPAN_NS: Final = 10 * _MINUTE
