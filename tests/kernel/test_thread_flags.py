"""The bit that says another task is due, as the kernel itself names it when it sets it (since v6.15)."""

from __future__ import annotations

import os
import struct
import threading
import time

import numpy as np
import pytest
from kernel.holding import instruction, load_64, on_cpu

from tracer.kernel.loader.btf import Btf
from tracer.kernel.loader.syscalls import _bpf, attach_raw_tracepoint, load_program
from tracer.kernel.maps import MappedArray
from tracer.kernel.thread_flags import constants

_TRACEPOINT = "sched_set_need_resched_tp"
_ARRAY, _MMAPABLE, _MAP_VALUE = 2, 1 << 10, 2
_BITS = 32


def bits_set(counts: int) -> bytes:
    """Return a program that counts its tracepoint's third argument, the number of the bit."""
    return (
        instruction(0x79, 2, 1, offset=16)  # r2 = ctx[2]
        + instruction(0x57, 2, value=_BITS - 1)
        + instruction(0x67, 2, value=3)
        + load_64(1, _MAP_VALUE, counts)
        + instruction(0x0F, 1, 2)
        + instruction(0xB7, 3, value=1)
        + instruction(0xDB, 1, 3)  # lock *(u64 *)r1 += r3
        + instruction(0xB7)
        + instruction(0x95)
    )


@pytest.mark.skipif(not constants(), reason="the bit is x86's")
@pytest.mark.skipif(not Btf.running_kernel().tracepoint(_TRACEPOINT), reason=f"no tracepoint {_TRACEPOINT}")
def test_the_kernel_sets_the_bit_that_programs_are_compiled_with():
    map = _bpf(0, bytearray(struct.pack("<8I", _ARRAY, 4, 8 * _BITS, 1, _MMAPABLE, 0, 0, 0)))
    counts = MappedArray(map, np.dtype("u8"), _BITS)
    program = load_program(17, bits_set(map), "bits")
    link = attach_raw_tracepoint(program, _TRACEPOINT)
    cpu = max(os.sched_getaffinity(0))
    done = threading.Event()
    # A real-time task that wakes preempts the other at once, whatever the preemption model.
    busy = on_cpu(cpu, lambda: [sum(range(1000)) for _ in iter(done.is_set, True)])
    on_cpu(cpu, lambda: [time.sleep(0.001) for _ in range(50)], fifo=True).join()
    done.set()
    busy.join()
    seen = set(np.flatnonzero(counts.rows).tolist())
    for descriptor in (link, program):
        os.close(descriptor)
    counts.close()
    bit = constants()["TIF_NEED_RESCHED"]
    assert bit in seen
    assert seen <= {bit, bit + 1}  # beside it, the lazy one
