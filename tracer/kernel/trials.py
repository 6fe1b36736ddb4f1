"""Whether the kernel does what foreshock needs, found out by doing it once: nothing stays behind."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Callable

from tracer.kernel.loader import syscalls
from tracer.kernel.loader.btf import Btf

__all__ = ["TRIALS", "run_trials"]

_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}.get(platform.machine(), -1)
_MAP_CREATE = 0
_MAP_TYPE_ARRAY, _MAP_TYPE_RINGBUF = 2, 27
_F_MMAPABLE = 1 << 10
_MAX_TRIAL_BYTES = 64 << 20

# r0 = 0; exit
_NOTHING = bytes.fromhex("b700000000000000 9500000000000000")
# r1 = r10 - 8; r2 = 8; r3 = 0; call bpf_probe_read_kernel; r0 = 0; exit. Under lockdown=confidentiality the
# kernel knows no such helper.
_READ_KERNEL = (
    bytes.fromhex("bfa1000000000000 07010000f8ffffff b702000008000000 b703000000000000 8500000071000000") + _NOTHING
)


def run_trials() -> dict[str, str]:
    """Return for each of ``TRIALS`` the kernel's refusal, "" when it worked."""
    return {name: _refusal(trial) for name, trial in TRIALS.items()}


def _refusal(trial: Callable[[], None]) -> str:
    try:
        trial()
    except OSError as error:
        return error.strerror or os.strerror(error.errno or errno.EINVAL)
    except ValueError as error:
        return str(error)
    return ""


def _mapped_array() -> None:
    os.close(_create_map(_MAP_TYPE_ARRAY, 4, os.sysconf("SC_PAGE_SIZE"), 1, _F_MMAPABLE))


def _beyond_memlock() -> None:
    """Make a map larger than the limit on locked memory: since v5.11 the limit doesn't count maps."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != resource.RLIM_INFINITY:
        os.close(_create_map(_MAP_TYPE_ARRAY, 4, 4096, min(soft, _MAX_TRIAL_BYTES) // 4096 + 1, 0))


def _ring_buffer() -> None:
    os.close(_create_map(_MAP_TYPE_RINGBUF, 0, 0, os.sysconf("SC_PAGE_SIZE"), 0))


def _btf_tracepoint() -> None:
    found = Btf.running_kernel().tracepoint("sched_process_exec")
    if found is None:
        raise ValueError("no btf_trace_sched_process_exec in the kernel's BTF")
    program = syscalls.load_program(syscalls.PROG_TYPE_TRACING, _READ_KERNEL, "doctor", found[0])
    _attach(program, lambda: syscalls.attach_raw_tracepoint(program, None))


def _clock() -> None:
    program = syscalls.load_program(syscalls.PROG_TYPE_PERF_EVENT, _NOTHING, "doctor")
    cpu = min(os.sched_getaffinity(0))
    _attach(program, lambda: syscalls.attach_clock(program, cpu, 1))


def _attach(program: int, attach: Callable[[], int]) -> None:
    try:
        os.close(attach())
    finally:
        os.close(program)


def _create_map(kind: int, key_size: int, value_size: int, entries: int, flags: int) -> int:
    attr = ctypes.create_string_buffer(struct.pack("=5I", kind, key_size, value_size, entries, flags), 72)
    descriptor = int(ctypes.CDLL(None, use_errno=True).syscall(_BPF, _MAP_CREATE, attr, len(attr)))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor


TRIALS: dict[str, Callable[[], None]] = {
    "mapped array": _mapped_array,
    "beyond memlock": _beyond_memlock,
    "ring buffer": _ring_buffer,
    "btf tracepoint": _btf_tracepoint,
    "clock": _clock,
}
