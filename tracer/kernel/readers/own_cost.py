"""The cost of foreshock's own programs and process."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

import numpy as np

from tracer.kernel.clock import Offset
from tracer.kernel.session import Session
from tracer.probe import Probe

__all__ = ["Reader"]

_ROW = np.dtype(
    [
        ("program", "S32"),
        ("run_count", "u8"),
        ("run_ns", "u8"),
        ("sampled_ns", "u8"),
        ("recursion_misses", "u8"),
        ("cpu_ns", "u8"),
        ("resident_bytes", "u8"),
        ("map_bytes", "u8"),
    ]
)

_CLOCK = np.dtype([("offset_ns", "i8")])

_SAMPLE_EVERY_NS = 60_000_000_000
#: Misses are rare; asking the kernel about every program takes longer than the rest of this module.
_MISSES_EVERY_NS = 10_000_000_000
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Reader:
    """Differences of the kernel's ``bpf_prog_info``, sampled, and of this process's CPU time."""

    def __init__(self, session: Session, probe: Probe) -> None:
        self._session = session
        self._cpu_ns = time.process_time_ns()
        self._costs = session.costs()
        self._quiet = np.zeros(len(self._costs) + 1, dtype=_ROW)
        self._quiet["program"] = [*(program.encode() for program in self._costs), b"agent"]
        self._counts_misses = session.counts_misses()
        self._next_misses_ns = 0
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._clock_offset = Offset()
        self._sampling_since_ns = 0
        self._next_sample_ns = 0
        self._sampled_ns = 0
        self._stats = -1

    def read(self, now_ns: int) -> dict[str, tuple[np.ndarray, Mapping[str, int]]]:
        """Return the tables ``cost``, with run times only if the accounting was on in this interval, and ``clock``."""
        sampled_ns = self._stop()
        rows = self._quiet.copy()
        misses = 0
        if sampled_ns or now_ns >= self._next_misses_ns:
            self._next_misses_ns = now_ns + _MISSES_EVERY_NS
            misses = self._count(rows, sampled_ns)
        cpu_ns = time.process_time_ns()
        agent = rows[-1]
        agent["cpu_ns"] = cpu_ns - self._cpu_ns
        agent["resident_bytes"] = int(os.pread(self._statm, 256, 0).split()[1]) * _PAGE
        agent["map_bytes"] = self._session.map_bytes
        self._cpu_ns = cpu_ns
        if now_ns >= self._next_sample_ns:
            self._start(now_ns)
        # Events that the kernel did not show to a program because it was running on that CPU already.
        losses = {"recursion_misses": misses} if self._counts_misses else {}
        return {"cost": (rows, losses), "clock": (np.array(self._clock_offset.moved(), _CLOCK), {})}

    def complete(self) -> None:
        """Let the next read tell everything up to then, misses included."""
        self._next_misses_ns = 0

    def pause(self) -> None:
        """End the sample early: no interval needs more than a second of it."""
        if self._stats >= 0:
            os.close(self._stats)
            self._stats = -1
            # Not as of the interval's end: other readers may have taken long meanwhile, and all of it was accounted.
            self._sampled_ns = time.monotonic_ns() - self._sampling_since_ns

    def close(self) -> None:
        self.pause()
        os.close(self._statm)

    def _count(self, rows: np.ndarray, sampled_ns: int) -> int:
        """Fill in what each program counted since the last time; return the sum of the misses."""
        costs = self._session.costs()
        total = 0
        for row, (program, after) in zip(rows, costs.items(), strict=False):
            before = self._costs[program]
            run_ns, run_count, misses = (max(new - old, 0) for new, old in zip(after, before, strict=True))
            row["recursion_misses"] = misses
            total += misses
            if sampled_ns:
                row["run_count"], row["run_ns"], row["sampled_ns"] = run_count, run_ns, sampled_ns
        self._costs = costs
        return total

    def _start(self, now_ns: int) -> None:
        self._next_sample_ns = now_ns + _SAMPLE_EVERY_NS
        self._sampled_ns = 0
        try:
            self._stats = self._session.accounting()
        except OSError:
            return  # before v5.8, or not allowed, or no answer: no run times, and the output says so
        self._sampling_since_ns = time.monotonic_ns()

    def _stop(self) -> int:
        self.pause()
        sampled_ns, self._sampled_ns = self._sampled_ns, 0
        return sampled_ns
