"""Which waits off the CPU are idle: those of threads that have nothing to do, by the functions in which they wait.

docs/reports.md#idle-waits has the rules and why they are so.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracer.analysis.rows import has

if TYPE_CHECKING:
    from tracer.analysis.frames import Frame, Paths
    from tracer.analysis.source import Source

__all__ = [
    "LOCKS",
    "NAMES",
    "OURS",
    "RULES",
    "SCHEDULER",
    "WHOSE",
    "IdleTime",
    "idle_kinds",
    "idle_time",
    "stack_kinds",
    "whose",
]

_KERNEL_THREADS: Final = "kernel threads without work"
_FUTEX: Final = "other threads (futex)"

#: What is waited for, by the innermost function of the kernel that isn't ``_THROUGH``. A kernel thread that waits in
#: its own main function is idle whatever that is called; here are those that have one more for it.
#: Sources: kernel/, fs/, net/ of v5.10 to v6.18.
RULES: Final[Mapping[str, tuple[str, ...]]] = {
    _KERNEL_THREADS: (
        *("kthread_parkme", "__kthread_parkme", "rcu_gp_fqs_loop", "rcu_nocb_gp_kthread", "nocb_gp_wait"),
        *("nocb_cb_wait", "kswapd_try_to_sleep", "irq_wait_for_interrupt", "svc_recv", "svc_get_next_xprt"),
    ),
    "sleep for a set time": ("do_nanosleep", "hrtimer_nanosleep", "alarm_timer_nsleep", "alarmtimer_do_nsleep"),
    "events (poll, accept, signals)": (
        *("ep_poll", "do_epoll_wait", "poll_schedule_timeout", "do_poll", "do_sys_poll", "do_select"),
        *("core_sys_select", "inet_csk_accept", "inet_csk_wait_for_connect", "unix_accept", "vsock_accept"),
        *("do_sigtimedwait", "sigsuspend", "sys_pause", "signalfd_dequeue", "signalfd_read_iter", "signalfd_read"),
        *("timerfd_read", "timerfd_read_iter", "eventfd_read", "inotify_read", "fanotify_read", "n_tty_read"),
        *("evdev_read", "devkmsg_read", "do_syslog", "fuse_dev_do_read", "kvm_vcpu_block", "kvm_vcpu_halt"),
    ),
    _FUTEX: ("futex_wait_queue_me", "futex_wait_queue", "futex_do_wait", "futex_wait_multiple", "futex_sleep_multiple"),
    "child processes": ("do_wait",),
}
_OWN = "foreshock itself"
_ALONG = "asleep from before the start to the end"
#: What foreshock's processes and threads are called, whichever of them runs: others may have names that begin alike.
OURS = (b"foreshock", b"foreshock-help", b"foreshock-rcu", b"foreshock-stby", b"foreshock-deep")
#: The kinds of idle waits by their numbers; 0 is none.
NAMES: Final = ("", *RULES, _OWN, _ALONG)
#: Who waits for a lock waits for whoever has it, and is not idle: parts of names of the program's functions.
LOCKS: Final = (
    *("lll_lock_wait", "pthread_mutex_", "pthread_rwlock_", "lock_contended", "read_contended", "write_contended"),
    *("take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread", "PyGILState_Ensure", "ObjectMonitor::enter"),
)
#: What every blocked task ends in.
SCHEDULER: Final = ("schedule", "__schedule")
#: Functions that wait for whoever called them.
_THROUGH = frozenset(
    {
        *(*SCHEDULER, "schedule_timeout", "schedule_timeout_interruptible", "schedule_timeout_idle"),
        *("schedule_hrtimeout", "schedule_hrtimeout_range", "schedule_hrtimeout_range_clock", "wait_woken"),
        *("__skb_wait_for_more_packets", "__skb_recv_datagram", "skb_recv_datagram"),
    }
)
#: What a kernel thread's stack begins with.
_BIRTH = frozenset({"ret_from_fork_asm", "ret_from_fork", "ret_from_kernel_thread", "kthread"})
_CODES = {function: kind for kind, name in enumerate(NAMES) for function in RULES.get(name, ())}
_SYSCALL = re.compile(r"__(?:x64|ia32|arm64|riscv|s390x?|se|do)_sys_")
#: Asleep, asleep without load, parked. Who is blocked (D), stopped or traced is so for a reason.
_ASLEEP = (b"S", b"I", b"P")
_ANYBODY, _BUSY, _TRACER, _ALL_ALONG = range(4)
#: The column that ``whose`` makes.
WHOSE = ("whose", "u1")


@dataclass(frozen=True)
class IdleTime:
    """What idle waits weigh, of ``total_ns`` off the CPU: ns by kind, most first; of how many threads (0: unknown)."""

    total_ns: int
    kinds: dict[str, int]
    threads: int

    @property
    def ns(self) -> int:
        """All kinds together."""
        return sum(self.kinds.values())

    @property
    def share(self) -> float:
        """That as a part of the total."""
        return self.ns / self.total_ns if self.total_ns else 0.0


def idle_time(rows: np.ndarray, kinds: np.ndarray, total_ns: int) -> IdleTime:
    """Return what is idle of rows with ``weight`` and maybe ``tid``; ``kinds`` are those of ``idle_kinds``."""
    # As Python's numbers: a hostile recording's weights add up to more than 63 bits hold.
    ns = [int(weight) for weight in np.bincount(kinds, rows["weight"].astype(np.float64), len(NAMES))]
    found = {name: weight for name, weight in zip(NAMES, ns, strict=True) if name and weight}
    threads = len(np.unique(rows["tid"][kinds > 0])) if has(rows, "tid") else 0
    return IdleTime(total_ns, dict(sorted(found.items(), key=lambda one: -one[1])), threads)


def whose(samples: np.ndarray, source: Source) -> np.ndarray:
    """Return of each row of ``offcpu.samples`` what decides beside its stack, shape ``(n,)``: for ``idle_kinds``.

    A job's processes are never idle: a rank that waits for another one waits as an idle server does.
    """
    found = np.full(len(samples), _ANYBODY, WHOSE[1])
    if has(samples, "waker_kind"):
        found[samples["waker_kind"] == b"a"] = _ALL_ALONG
    own = np.isin(samples["comm"], OURS)
    found[own | ((samples["pid"] == source.pid) & (source.pid > 0))] = _TRACER
    found[np.isin(samples["pid"], source.jobs.at_work())] = _BUSY
    if has(samples, "state") and samples.dtype["state"].kind == "S":
        found[~np.isin(samples["state"], _ASLEEP)] = _BUSY
    return found


def idle_kinds(of_stacks: np.ndarray, whose: np.ndarray) -> np.ndarray:
    """Return the kind of idle wait of each row, numbers of ``NAMES``, shape ``(n,)``: its stack's, its task's."""
    along = np.where(of_stacks > 0, of_stacks, NAMES.index(_ALONG))
    return np.choose(whose, [of_stacks, 0, NAMES.index(_OWN), along]).astype("u1")


def stack_kinds(told: Paths) -> np.ndarray:
    """Return the kind of idle wait of each stack, numbers of ``NAMES``, shape ``(stacks,)``."""
    stacks, names = len(told.lengths), [_plain(frame) for frame in told.frames]
    stack = np.repeat(np.arange(stacks), told.lengths)
    numbers = np.append(told.numbers, len(names))  # the last is what a stack without frames has
    places = np.flatnonzero(~_among(names, _THROUGH)[told.numbers])
    innermost = np.full(stacks, -1)
    np.maximum.at(innermost, stack[places], places)
    found = np.array([*(_CODES.get(name, 0) for name in names), 0])[numbers[innermost]]
    outermost = np.where(told.lengths > 0, np.cumsum(told.lengths) - told.lengths, -1)
    birth = np.append(_among(names, _BIRTH), False)
    own = np.bincount(stack[places], ~birth[numbers[places]], stacks)
    found[birth[numbers[outermost]] & (own == 1)] = NAMES.index(_KERNEL_THREADS)
    locks = np.array([not frame.kernel and any(one in frame.symbol for one in LOCKS) for frame in told.frames], bool)
    locked = np.bincount(stack, locks[told.numbers], stacks) > 0
    kinds: np.ndarray = np.where(locked & (found == NAMES.index(_FUTEX)), 0, found)
    return kinds


def _among(names: Sequence[str], some: Container[str]) -> np.ndarray:
    return np.array([name in some for name in names], bool)


def _plain(frame: Frame) -> str:
    """Return a kernel function's name as its source has it: compilers add to it, and each architecture to a syscall."""
    return _SYSCALL.sub("sys_", frame.symbol.partition(".")[0]) if frame.kernel else ""
