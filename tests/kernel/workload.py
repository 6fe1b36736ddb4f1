"""Workloads with known answers: tasks that wait for a go and tell what they used, softirqs held up, /proc counters."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from kernel.traced import Traced

from tracer.kernel.loader.syscalls import _bpf, load_program
from tracer.window import Window

__all__ = ["HOG", "SPIN", "Proc", "SoftirqsHeld", "Task", "per_cpu", "test_run"]

#: Now and then a CPU runs no raw tracepoint program for some milliseconds, not even an empty one: the kernel's own
#: counters go on. Up to 1 % was seen in a second, on a machine where much is attached and detached.
UNSEEN = 0.03

_PRELUDE = """
import json, os, resource, sys, time
def use():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    run_ns, wait_ns, slices = map(int, open("/proc/self/schedstat").read().split())
    return dict(
        cpu_ns=int((usage.ru_utime + usage.ru_stime) * 1e9), voluntary=usage.ru_nvcsw, involuntary=usage.ru_nivcsw,
        run_ns=run_ns, wait_ns=wait_ns, slices=slices,
    )
def tell(value):
    os.write(1, (json.dumps(value) + "\\n").encode())
def go():
    return os.read(0, 1)
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
tell("ready")
go()
before = use()
"""

_POSTLUDE = """
after = use()
tell({name: after[name] - before[name] for name in after})
go()
"""

#: Use the CPU for argv[1] seconds.
SPIN = "spin(float(sys.argv[1]))"

#: The same before everyone else, but for 50 ms a second at most that the kernel keeps for ordinary tasks (v6.12).
#: Not longer than 0.9 s, or older kernels stop it for a while.
HOG = "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))\nspin(float(sys.argv[1]))"


class Task:
    """A Python process on one CPU that waits for ``go()``, runs ``body`` and tells what that used (``result()``).

    It lives until the end of the ``with`` block, asleep, so that its pid stays its own.
    """

    def __init__(self, body: str, *arguments: object, cpu: int, namespace: str = "") -> None:
        self._body, self._arguments, self._cpu, self._namespace = body, arguments, cpu, namespace

    def __enter__(self) -> Task:
        inside = ["ip", "netns", "exec", self._namespace] if self._namespace else []
        program = _PRELUDE + self._body + _POSTLUDE
        command = [*inside, sys.executable, "-c", program, *map(str, self._arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self.pid = self._process.pid
        os.sched_setaffinity(self.pid, {self._cpu})
        assert self.result() == "ready"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error:
            self._process.kill()
        self._in.close()
        self._process.wait(timeout=10)
        self._out.close()

    def go(self) -> None:
        self._in.write(b"g")

    def result(self) -> Any:
        """Wait for the next thing the task tells: what it used between ``go`` and its end."""
        return json.loads(self._out.readline())


class Proc:
    """What a /proc table of counters per CPU says happened while ``traced`` collected: at least and at most.

    Read before and after each end of the interval: what it counted in between is a bound, whatever else runs.
    """

    def __init__(self, path: str, traced: Traced) -> None:
        self._path, self._traced = path, traced
        outer = per_cpu(path)
        traced.collect()
        self._starts = outer, per_cpu(path)

    def end(self) -> dict[str, Window]:
        """End the interval; return its windows. ``least`` and ``most`` are set now."""
        inner = per_cpu(self._path)
        windows = self._traced.collect()
        self.most = _difference(self._starts[0], per_cpu(self._path))
        self.least = _difference(self._starts[1], inner)
        return windows

    def agrees(self, name: str, cpu: int, count: int) -> bool:
        """Whether ``count`` is right, but for one that was just going on at either end, and for ``UNSEEN``."""
        least = self.least[name][cpu]
        return least - max(5, UNSEEN * least) <= count <= self.most[name][cpu] + 1

    def told(self, name: str, cpu: int, count: int) -> str:
        least, most = self.least[name][cpu], self.most[name][cpu]
        return f"{self._path}: {name} on CPU {cpu} rose by {least} to {most}, counted {count}"


def per_cpu(path: str) -> dict[str, dict[int, int]]:
    """Read /proc/interrupts or the like: counts by row and CPU."""
    header, *lines = Path(path).read_text().splitlines()
    cpus = [int(name.removeprefix("CPU")) for name in header.split()]
    rows = {}
    for name, _, rest in (line.partition(":") for line in lines):
        fields = rest.split()[: len(cpus)]
        if len(fields) == len(cpus):
            rows[name.strip()] = dict(zip(cpus, map(int, fields), strict=True))
    return rows


def _difference(before: dict[str, dict[int, int]], after: dict[str, dict[int, int]]) -> dict[str, dict[int, int]]:
    return {name: {cpu: count - before[name][cpu] for cpu, count in after[name].items()} for name in before}


class SoftirqsHeld:
    """A thread on one CPU with softirqs switched off, 10 to 40 ms at a time, for as long as the block runs.

    Keep it below a second. It runs a slow BPF program on a packet (BPF_PROG_TEST_RUN), which the kernel does with
    bottom halves off.
    """

    PRIORITY = 1  # real-time
    _CALLS, _TURNS = 20, 45_000  # just below the verifier's million instructions

    def __init__(self, cpu: int) -> None:
        self._cpu = cpu
        self._program = load_program(3, self._code(), "slow")  # BPF_PROG_TYPE_SCHED_CLS
        self._stop = threading.Event()
        self._running = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> SoftirqsHeld:
        self._thread.start()
        assert self._running.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._program)

    def _run(self) -> None:
        os.sched_setaffinity(0, {self._cpu})
        # Else it would share the CPU on a busy machine, and softirqs run whenever it does not.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(self.PRIORITY))
        time.sleep(0.001)  # a task is known by the priority that it was switched in with
        self.tid = threading.get_native_id()
        while not self._stop.is_set():
            self._running.set()
            test_run(self._program, data=bytes(64))

    def _code(self) -> bytes:
        def instruction(operation: int, register: int = 0, offset: int = 0, value: int = 0) -> bytes:
            return struct.pack("<BBhi", operation, register, offset, value)

        loop = instruction(0x85, value=5) * self._CALLS + instruction(0x07, 6, value=1)  # bpf_ktime_get_ns; r6++
        back = -len(loop) // 8 - 1
        again = instruction(0xA5, 6, back, self._TURNS)  # while r6 < turns
        return instruction(0xB7, 6) + loop + again + instruction(0xB7) + instruction(0x95)


def test_run(program: int, data: bytes = b"", context: bytes = b"", cpu: int | None = None) -> None:
    """Run a program once (BPF_PROG_TEST_RUN): on ``data``, or on a raw tracepoint's arguments on ``cpu``."""
    packet, arguments = ctypes.create_string_buffer(data), ctypes.create_string_buffer(context)
    attr = bytearray(80)
    struct.pack_into(
        "<IIIIQQIIIIQQII", attr, 0,
        program, 0, len(data), 0, ctypes.addressof(packet) if data else 0, 0, 0 if context else 1, 0,
        len(context), 0, ctypes.addressof(arguments) if context else 0, 0, 0 if cpu is None else 1, cpu or 0,
    )  # fmt: skip
    _bpf(10, attr)


test_run.__test__ = False  # type: ignore[attr-defined]
