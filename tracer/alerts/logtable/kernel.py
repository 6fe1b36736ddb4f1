"""The kernel itself: bugs, lockups, hangs, stalls, and memory that it can't get."""

from __future__ import annotations

from functools import partial

from tracer.alerts.alert import Severity
from tracer.alerts.logpattern import Groups, LogPattern

__all__ = ["PATTERNS"]

_INFO, _WARNING, _PAGE = Severity.INFO, Severity.WARNING, Severity.PAGE

_bug = partial(LogPattern, "kernel-bug", kind="node", about="bug")
_lockup = partial(LogPattern, "lockup-report", kind="cpu", about="{cpu}")
_oom = partial(LogPattern, "oom-victim", kind="memory", about="oom")

#: A task's name at the beginning of a line: whatever it is, at most 15 bytes.
_COMM = r".{1,15}"


def _pages(groups: Groups) -> tuple[Severity, str]:
    pages = 2 ** min(int(groups["order"]), 20)
    return _WARNING, f"no {pages} contiguous pages of memory were left when the kernel needed them"


PATTERNS = (
    _bug(
        r"BUG: (?P<what>kernel NULL pointer dereference|unable to handle (?:page fault|kernel \w+))",
        _PAGE,
        "kernel bug: {what}",
    ),
    _bug(r"kernel BUG at (?P<where>\S+)!$", _PAGE, "kernel bug at {where}"),
    # "Oops: Oops: 0000" since v6.5. A process called "Oops: 0000 [#1]" goes on with its pid in brackets.
    _bug(r"(?:Oops: ){1,2}(?P<code>[0-9a-f]{4}) \[#\d+\](?: |$)", _PAGE, "kernel oops {code}"),
    _bug(
        r"(?:Oops: )?general protection fault(?:, (?:probably for non-canonical|maybe for) address |: )",
        _PAGE,
        "kernel bug: general protection fault",
    ),
    _bug(
        r"BUG: Bad (?:page state in process|page map in process|rss-counter state)",
        _PAGE,
        "kernel bug: memory management has found a corrupted state",
    ),
    _bug(
        r"BUG: (?P<what>scheduling while atomic|sleeping function called from invalid context|KASAN|KFENCE|KCSAN)[: ]",
        _WARNING,
        "kernel bug: {what}",
    ),
    _bug(
        r"(?P<what>list_(?:add|del) corruption|refcount_t: [\w -]+; use-after-free)\.",
        _PAGE,
        "kernel bug: {what}",
    ),
    _bug(r"Kernel panic - not syncing: (?P<why>.+)", _PAGE, "kernel panic: {why}"),
    _lockup(
        r"(?:watchdog: )?BUG: soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<age>\d+)s! \[(?P<task>.*)\]$",
        _PAGE,
        "CPU {cpu} has been stuck for {age} s, the kernel says ({task})",
    ),
    _lockup(
        r"(?:NMI watchdog|watchdog): (?:CPU\d+: )?Watchdog detected hard LOCKUP on cpu (?P<cpu>\d+)",
        _PAGE,
        "CPU {cpu} takes no interrupts, the kernel says",
    ),
    _lockup(
        r"BUG: workqueue lockup - pool cpus=(?P<cpu>\S+) .*stuck for (?P<age>\d+)s!",
        _PAGE,
        "the kernel workers of CPU {cpu} have been stuck for {age} s, the kernel says",
    ),
    LogPattern(
        "rcu-stall-warning",
        r"rcu: INFO: (?P<name>\w+) (?:self-detected stall on CPU|detected (?:expedited )?stalls on CPUs/tasks)",
        _PAGE,
        "a grace period of {name} does not end, the kernel says",
        kind="node",
        about="rcu",
    ),
    LogPattern(
        "hung-task-report",
        r"INFO: task (?P<task>.+):(?P<pid>\d+) blocked (?:in I/O wait )?for more than (?P<age>\d+) seconds\.",
        _WARNING,
        "{task}[{pid}] has been blocked for {age} s, the kernel says",
        kind="node",
        about="hung tasks",
    ),
    _oom(
        r"Memory cgroup out of memory: Killed process (?P<pid>\d+) \((?P<task>.*)\) total-vm:",
        _INFO,
        "{task}[{pid}] was killed: its cgroup has reached its limit of memory",
    ),
    _oom(
        r"Out of memory(?: \(oom_kill_allocating_task\))?: Killed process (?P<pid>\d+) \((?P<task>.*)\) total-vm:",
        _WARNING,
        "{task}[{pid}] was killed: the node is out of memory",
    ),
    _oom(rf"{_COMM} invoked oom-killer: gfp_mask=", _INFO, "the OOM killer was called"),
    _oom(
        r"(?:Out of memory and no killable processes\.\.\.|Kernel panic - not syncing: System is deadlocked on memory)",
        _PAGE,
        "out of memory, and nothing is left to kill",
    ),
    LogPattern(
        "allocation-failure",
        rf"{_COMM}: page allocation failure: order:(?P<order>\d+), mode:",
        _WARNING,
        "",
        kind="memory",
        about="allocation",
        judge=_pages,
    ),
    LogPattern(
        "rt-throttled",
        r"sched: RT throttling activated",
        _INFO,
        "a real-time task has used a CPU without a break: it is stopped for a moment of every second",
        kind="node",
        about="real-time tasks",
    ),
)
