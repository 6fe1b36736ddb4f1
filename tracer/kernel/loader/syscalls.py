"""The few system calls that bcc has no Python for: bpf(2) and perf_event_open(2).

Standard library only and Python 3.6: the loader runs under whichever interpreter has bcc.
"""

import ctypes
import errno
import os
import platform
import struct
import time
from typing import Optional, Tuple

_BPF, _PERF_EVENT_OPEN = {
    "x86_64": (321, 298),
    "aarch64": (280, 241),
    "riscv64": (280, 241),
    "ppc64le": (361, 319),
    "s390x": (351, 331),
}.get(platform.machine(), (-1, -1))

MAP_LOOKUP = 1
MAP_DELETE = 3
MAP_NEXT_KEY = 4
MAP_LOOKUP_BATCH = 24
MAP_LOOKUP_AND_DELETE_BATCH = 25
MAP_DELETE_BATCH = 27

_PROG_LOAD = 5
_RAW_TRACEPOINT_OPEN = 17
_OBJ_GET_INFO_BY_FD = 15
_ENABLE_STATS = 32

PROG_TYPE_PERF_EVENT = 7
PROG_TYPE_RAW_TRACEPOINT = 17
PROG_TYPE_TRACING = 26
_ATTACH_TRACE_RAW_TP = 23

_PERF_TYPE_SOFTWARE = 1
_PERF_COUNT_SW_CPU_CLOCK = 0
_PERF_COUNT_SW_DUMMY = 9
_PERF_SAMPLE_TIME = 1 << 2
_PERF_FLAG_FD_CLOEXEC = 8
# mmap, comm, task, sample_id_all, mmap2, comm_exec, use_clockid: their places in struct perf_event_attr.
_SIDEBAND = sum(1 << bit for bit in (8, 9, 13, 18, 23, 24, 25))
_PERF_BUILD_ID = 1 << 34
_PERF_ATTR_SIZE = 112
_PERF_EVENT_IOC_SET_BPF = 0x40042408

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command, attr):
    # type: (int, bytearray) -> int
    buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
    result = _libc.syscall(_BPF, command, buffer, len(attr))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result)


def load_program(prog_type, code, name, attach_btf_id=0):
    # type: (int, bytes, str, int) -> int
    """Load bytecode and return its descriptor.

    ``attach_btf_id`` makes a PROG_TYPE_TRACING program a BTF raw tracepoint. OSError says why the kernel
    refused; its ``strerror`` ends with the verifier's last lines.
    """
    try:
        return _load(prog_type, code, name, attach_btf_id, None)
    except OSError:
        # Again with a log: asking for one always would cost time on every start.
        log = ctypes.create_string_buffer(1 << 20)
        try:
            return _load(prog_type, code, name, attach_btf_id, log)
        except OSError as error:
            lines = log.value.decode(errors="replace").strip().splitlines()
            detail = " | ".join(line.strip() for line in lines[-4:-1])
            raise OSError(error.errno, "{} ({})".format(error.strerror, detail or "no verifier log")) from None


def _load(prog_type, code, name, attach_btf_id, log):
    # type: (int, bytes, str, int, Optional[ctypes.Array[ctypes.c_char]]) -> int
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    attr = bytearray(112)
    struct.pack_into(
        "<IIQQIIQI", attr, 0,
        prog_type, len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(licence),
        1 if log else 0, len(log) if log else 0, ctypes.addressof(log) if log else 0, 0,
    )  # fmt: skip
    struct.pack_into("16s", attr, 48, name.encode()[:15])
    if prog_type == PROG_TYPE_TRACING:
        struct.pack_into("<I", attr, 68, _ATTACH_TRACE_RAW_TP)
        struct.pack_into("<I", attr, 108, attach_btf_id)
    return _bpf(_PROG_LOAD, attr)


def attach_raw_tracepoint(program, name):
    # type: (int, Optional[str]) -> int
    """Attach a program to a raw tracepoint; None for a BTF raw tracepoint, which knows its own. Returns the link."""
    text = ctypes.create_string_buffer(name.encode()) if name else None
    attr = bytearray(16)
    struct.pack_into("<QI", attr, 0, ctypes.addressof(text) if text else 0, program)
    return _bpf(_RAW_TRACEPOINT_OPEN, attr)


def attach_clock(program, cpu, hz):
    # type: (int, int, int) -> int
    """Run a program ``hz`` times a second on ``cpu``, from its software clock. Returns the perf event."""
    attr = bytearray(_PERF_ATTR_SIZE)
    struct.pack_into("<IIQQ", attr, 0, _PERF_TYPE_SOFTWARE, _PERF_ATTR_SIZE, _PERF_COUNT_SW_CPU_CLOCK, 10**9 // hz)
    buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
    event = _libc.syscall(_PERF_EVENT_OPEN, buffer, -1, cpu, -1, _PERF_FLAG_FD_CLOEXEC)
    if event < 0 or _libc.ioctl(event, _PERF_EVENT_IOC_SET_BPF, program) < 0:
        error = ctypes.get_errno()
        if event >= 0:
            os.close(event)
        raise OSError(error, os.strerror(error))
    return int(event)


def open_sideband(cpu):
    # type: (int) -> int
    """Return a perf event that counts nothing, and records what programs ``cpu`` starts and maps.

    With the build ids of files since v5.12, with their numbers before.
    """
    for flags in (_SIDEBAND | _PERF_BUILD_ID, _SIDEBAND):
        attr = bytearray(_PERF_ATTR_SIZE)
        struct.pack_into("<IIQ", attr, 0, _PERF_TYPE_SOFTWARE, _PERF_ATTR_SIZE, _PERF_COUNT_SW_DUMMY)
        struct.pack_into("<Q", attr, 24, _PERF_SAMPLE_TIME)
        struct.pack_into("<Q", attr, 40, flags)
        struct.pack_into("<i", attr, 92, time.CLOCK_MONOTONIC)
        buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
        event = _libc.syscall(_PERF_EVENT_OPEN, buffer, -1, cpu, -1, _PERF_FLAG_FD_CLOEXEC)
        if event >= 0:
            return int(event)
    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error))


def program_costs(program):
    # type: (int) -> Tuple[int, int, int]
    """Return ``(run_time_ns, run_count, recursion_misses)`` of a program since it was loaded.

    Source: ``struct bpf_prog_info``. Times and counts grow only while ``enable_stats`` is held open; the
    misses (since v5.12, 0 before) always.
    """
    info, _ = _program_info(program)
    run_time_ns, run_count, misses = struct.unpack_from("<QQQ", info, 192)
    return run_time_ns, run_count, misses


def counts_misses(program):
    # type: (int) -> bool
    """Return whether this kernel counts the runs of a program that it skipped."""
    # Since 9ed9e9ba2337 ("bpf: Count the number of times recursion was prevented") (in v5.12).
    return _program_info(program)[1] >= 216


def _program_info(program):
    # type: (int) -> Tuple[bytearray, int]
    """Return ``struct bpf_prog_info``, and how much of it the kernel knows."""
    info = bytearray(232)
    buffer = (ctypes.c_char * len(info)).from_buffer(info)
    attr = bytearray(16)
    struct.pack_into("<IIQ", attr, 0, program, len(info), ctypes.addressof(buffer))
    _bpf(_OBJ_GET_INFO_BY_FD, attr)
    return info, int(struct.unpack_from("<I", attr, 4)[0])


def map_element(command, descriptor, key, value):
    # type: (int, int, int, int) -> None
    """Run one of the MAP_… commands on the element whose key is at address ``key``; ``value`` is an address, too.

    MAP_NEXT_KEY puts the key after ``key`` (0 for the first) at ``value``. Raises OSError, ENOENT for no element.
    """
    attr = bytearray(32)
    struct.pack_into("<IIQQ", attr, 0, descriptor, 0, key, value)
    _bpf(command, attr)


def map_batch(command, descriptor, keys, values, room):
    # type: (int, int, int, int, int) -> Tuple[int, bool]
    """Read the first ``room`` elements of a hash at once (since v5.6), to the addresses ``keys`` and ``values``.

    Returns how many there were, and whether these were all. MAP_LOOKUP_AND_DELETE_BATCH takes them out,
    MAP_DELETE_BATCH those of the ``room`` ``keys``.
    """
    token = ctypes.c_uint64(0)
    attr = bytearray(56)
    struct.pack_into("<QQQQII", attr, 0, 0, ctypes.addressof(token), keys, values, room, descriptor)
    whole = False
    try:
        _bpf(command, attr)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        whole = True
    return int(struct.unpack_from("<I", attr, 32)[0]), whole


def enable_stats():
    # type: () -> int
    """Switch the kernel's accounting of BPF run time on for as long as the returned descriptor is open.

    It costs every BPF program on the node about 115 ns a run: hold it for a second, not for good.
    """
    return _bpf(_ENABLE_STATS, bytearray(4))


def die_with_parent():
    # type: () -> None
    """Ask the kernel to kill this process when its parent dies (PR_SET_PDEATHSIG)."""
    _libc.prctl(1, 9, 0, 0, 0)
