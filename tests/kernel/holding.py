"""Hold a CPU in the kernel for a known time, without a module: a BPF program that is slow on purpose.

The program copies a few megabytes again and again until its time is over. Run by BPF_PROG_TEST_RUN it spins with
preemption off, and if asked interrupts too; attached to a socket, it makes the receipt of a packet a long softirq.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType

from kernel.workload import test_run

from tracer.kernel import memlock
from tracer.kernel.loader.btf import Btf
from tracer.kernel.loader.syscalls import _bpf, load_program

__all__ = ["Holder", "has_local_irq", "instruction", "load_64", "on_cpu"]

_ARRAY, _SOCKET_FILTER, _SO_ATTACH_BPF = 2, 1, 50
_MAP_VALUE = _KERNEL_FUNCTION = 2
_KTIME_GET_NS, _PROBE_READ_KERNEL = 5, 113

#: As large as a map's value may be on Linux 5.10; so many copies take 1 ms where memory is fast.
_CHUNK, _COPIES = 4 << 20, 8
#: Bounds the program whatever the clock says: 8 s at least. The verifier remembers 8,192 jumps.
_ROUNDS = 8_000


class Holder:
    """The slow program; each run of it takes ``seconds``."""

    def __init__(self, seconds: float, *, interrupts: bool = True) -> None:
        self._memory = _map()
        self._program = load_program(_SOCKET_FILTER, _code(self._memory, seconds, interrupts), "hold")

    def hold(self) -> None:
        """Spin on this thread's CPU, where no other task runs until it is over."""
        test_run(self._program, data=bytes(64))

    def hold_softirq(self) -> None:
        """Send one packet whose receipt takes as long: on this CPU, unless packets are steered."""
        datagram = socket.AF_INET, socket.SOCK_DGRAM
        with socket.socket(*datagram) as receiver, socket.socket(*datagram) as sender:
            receiver.bind(("127.0.0.1", 0))
            receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, self._program)
            sender.sendto(b"slow", receiver.getsockname())
            # Another CPU may receive it: it must find the socket.
            time.sleep(0.05)

    def __enter__(self) -> Holder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._program)
        os.close(self._memory)


def _map() -> int:
    create = bytearray(struct.pack("<8I", _ARRAY, 4, _CHUNK, 1, 0, 0, 0, 0))
    try:
        return _bpf(0, create)
    except PermissionError:
        # Before v5.11. Only there: other tests are about the limit.
        memlock.lift_limit()
        return _bpf(0, create)


def has_local_irq() -> bool:
    """Tell whether programs may switch interrupts off here (since v6.14)."""
    return _function("bpf_local_irq_save") > 0


def on_cpu(cpu: int, work: Callable[[], object], *, fifo: int = 0) -> threading.Thread:
    """Start ``work`` in a thread on ``cpu``, with real-time priority ``fifo`` unless that is 0."""

    def run() -> None:
        os.sched_setaffinity(0, {cpu})
        if fifo:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(fifo))
        work()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def _code(memory: int, seconds: float, interrupts: bool) -> bytes:
    """Return: start; r7 = now; do { copies } while (now - r7 <= seconds); end."""
    save, restore = b"", b""
    if not interrupts:
        flags = instruction(0xBF, 1, 10) + instruction(0x07, 1, value=-8)  # r1 = the stack's first word
        save = flags + instruction(0x85, 0, _KERNEL_FUNCTION, value=_function("bpf_local_irq_save"))
        restore = flags + instruction(0x85, 0, _KERNEL_FUNCTION, value=_function("bpf_local_irq_restore"))
    start = save + _call(_KTIME_GET_NS) + instruction(0xBF, 7, 0) + instruction(0xB7, 8)
    copy = (
        load_64(1, _MAP_VALUE, memory)
        + instruction(0xB7, 2, value=_CHUNK)
        + load_64(3, _MAP_VALUE, memory)
        + _call(_PROBE_READ_KERNEL)
    ) * _COPIES
    copy += (
        _call(_KTIME_GET_NS)
        + instruction(0x1F, 0, 7)  # r0 -= r7
        + load_64(1, 0, int(seconds * 1e9))
        + instruction(0x2D, 0, 1, offset=2)  # if r0 > r1: end
        + instruction(0x07, 8, value=1)  # r8++
    )
    again = instruction(0xA5, 8, offset=-len(copy) // 8 - 1, value=_ROUNDS)  # while r8 < rounds
    return start + copy + again + restore + instruction(0xB7) + instruction(0x95)


def instruction(operation: int, register: int = 0, source: int = 0, *, offset: int = 0, value: int = 0) -> bytes:
    """Return one BPF instruction."""
    return struct.pack("<BBhi", operation, register | source << 4, offset, value)


def _call(helper: int) -> bytes:
    return instruction(0x85, value=helper)


def load_64(register: int, source: int, value: int) -> bytes:
    """Load 64 bits: a number, or the address of a map's first value."""
    low, high = value & 0xFFFFFFFF, value >> 32
    return struct.pack("<BBhI", 0x18, register | source << 4, 0, low) + struct.pack("<BBhI", 0, 0, 0, high)


def _function(name: str) -> int:
    """Return the BTF id of a kernel function, 0 if there is none: what a program calls it by."""
    btf = Btf.running_kernel()
    at = btf._names.find(b"\0" + name.encode() + b"\0") + 1
    ids = (i for i in range(1, len(btf._starts)) if btf._kind(i) == 12 and btf._words[btf._starts[i]] == at)
    return next(ids, 0) if at else 0
