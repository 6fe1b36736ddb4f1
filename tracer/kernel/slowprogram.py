"""A BPF program that does nothing for a while: the kernel runs it on a packet with softirqs switched off.

Standard library only: workloads run without site-packages.
"""

from __future__ import annotations

import ctypes
import struct

from tracer.kernel import memlock
from tracer.kernel.loader.syscalls import _bpf, load_program

__all__ = ["load", "run"]

_PROG_TYPE_SCHED_CLS = 3
_PROG_TEST_RUN = 10
_KTIME_GET_NS = 5
#: Just below the million instructions that the verifier follows; 10 to 40 ms.
_CALLS, _TURNS = 20, 45_000


def load() -> int:
    """Return the program's descriptor. Raises OSError."""
    memlock.lift_limit()
    return load_program(_PROG_TYPE_SCHED_CLS, _code(), "slow")


def run(program: int) -> None:
    """Run it once on this CPU. Source: bpf(2), BPF_PROG_TEST_RUN; bpf_test_run() in net/bpf/test_run.c."""
    packet = ctypes.create_string_buffer(64)
    attr = bytearray(80)
    struct.pack_into("<IIIIQQII", attr, 0, program, 0, len(packet), 0, ctypes.addressof(packet), 0, 1, 0)
    _bpf(_PROG_TEST_RUN, attr)


def _code() -> bytes:
    loop = _instruction(0x85, value=_KTIME_GET_NS) * _CALLS + _instruction(0x07, 6, value=1)  # r6++
    again = _instruction(0xA5, 6, -len(loop) // 8 - 1, _TURNS)  # while r6 < _TURNS
    return _instruction(0xB7, 6) + loop + again + _instruction(0xB7) + _instruction(0x95)


def _instruction(operation: int, register: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", operation, register, offset, value)
