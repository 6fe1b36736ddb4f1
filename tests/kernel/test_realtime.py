"""What runs before everything else is ended when it does not sleep; what is locked stays in memory."""

from __future__ import annotations

import mmap
import os
import signal
import time

from tracer.kernel import memlock, realtime


def _forked(work) -> int:
    """Run ``work`` in a process of its own and return how it ended, as waitpid says it."""
    child = os.fork()
    if not child:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def test_one_that_never_sleeps_is_ended(monkeypatch):
    monkeypatch.setattr(realtime, "LONGEST_SECONDS", 0.3)

    def spin() -> int:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        if realtime.real_time():
            return 2
        end = time.monotonic() + 3
        while time.monotonic() < end:
            pass
        return 0

    began = time.monotonic()
    status = _forked(spin)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    assert time.monotonic() - began < 2.5


def test_one_that_sleeps_goes_on(monkeypatch):
    monkeypatch.setattr(realtime, "LONGEST_SECONDS", 0.3)

    def nap() -> int:
        if realtime.real_time() or os.sched_getscheduler(0) != os.SCHED_FIFO:
            return 2
        for _ in range(20):
            end = time.monotonic() + 0.02
            while time.monotonic() < end:
                pass
            time.sleep(0.01)
        return 0

    assert _forked(nap) == 0


def test_memory_is_locked_now_and_later():
    def lock() -> int:
        if memlock.lock_memory():
            return 2
        before = _locked_kb()
        # Not from the heap, which may have as much left that is locked already.
        kept = mmap.mmap(-1, 8 << 20)
        for page in range(0, len(kept), mmap.PAGESIZE):
            kept[page] = 1
        return 0 if before > 1000 and _locked_kb() - before >= 8000 else 3

    assert _forked(lock) == 0


def _locked_kb() -> int:
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Locked:"))


def test_throttling_is_a_share_of_a_cpu():
    assert 0 < realtime.throttled_percent() <= 100
