"""BPF programs, maps and links of this kernel: which there are, whose, and what programs cost."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracer.kernel.loader import syscalls
from tracer.kernel.loader.btf import Btf

__all__ = ["KINDS", "Program", "children", "empty_program", "ids", "map_names", "owned", "program", "statistics"]

_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}.get(platform.machine(), -1)
_GET_INFO = 15

#: Per kind of object: the command that gives the next id, the one that opens an id, the field of /proc/PID/fdinfo.
KINDS = {"prog": (11, 13), "map": (12, 14), "link": (31, 30)}

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attr: bytearray) -> int:
    buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
    result = _libc.syscall(_BPF, command, buffer, len(attr))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result)


def ids(kind: str) -> set[int]:
    """Return the ids of all objects of a kind ("prog", "map", "link") in the kernel."""
    found: set[int] = set()
    last = 0
    while True:
        attr = bytearray(16)
        struct.pack_into("<I", attr, 0, last)
        try:
            _bpf(KINDS[kind][0], attr)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return found
            raise
        last = struct.unpack_from("<I", attr, 4)[0]
        found.add(last)


def owned(pid: int) -> dict[str, set[int]]:
    """Return the ids of the objects a process holds descriptors of, by kind; links' programs included."""
    found: dict[str, set[int]] = {kind: set() for kind in KINDS}
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                fields = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
                for kind in KINDS:
                    if f"{kind}_id" in fields:
                        found[kind].add(int(fields[f"{kind}_id"]))
    return found


@dataclass(frozen=True)
class Program:
    """One program: its name and, of the time in which statistics were on, how long it ran and how often."""

    name: str
    run_ns: int
    runs: int


@contextlib.contextmanager
def _opened(kind: str, number: int) -> Iterator[int]:
    attr = bytearray(16)
    struct.pack_into("<I", attr, 0, number)
    descriptor = _bpf(KINDS[kind][1], attr)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _info(kind: str, number: int, size: int) -> bytearray:
    with _opened(kind, number) as descriptor:
        info = bytearray(size)
        buffer = (ctypes.c_char * len(info)).from_buffer(info)
        attr = bytearray(16)
        struct.pack_into("<IIQ", attr, 0, descriptor, len(info), ctypes.addressof(buffer))
        _bpf(_GET_INFO, attr)
        return info


def program(number: int) -> Program:
    """Return a program by its id. Source: ``struct bpf_prog_info``."""
    info = _info("prog", number, 232)
    run_ns, runs = struct.unpack_from("<QQ", info, 192)
    return Program(_text(info[64:80]), run_ns, runs)


def map_names(numbers: set[int]) -> dict[int, str]:
    """Return the names of those maps that are still there. Source: ``struct bpf_map_info``."""
    names = {}
    for number in numbers:
        with contextlib.suppress(OSError):
            names[number] = _text(_info("map", number, 80)[24:40])
    return names


def _text(field: bytearray) -> str:
    return bytes(field).partition(b"\0")[0].decode(errors="replace")


@contextlib.contextmanager
def statistics() -> Iterator[None]:
    """Have the kernel measure every program's run time meanwhile."""
    descriptor = syscalls.enable_stats()
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def empty_program(tracepoint: str, *, clock: bool = False) -> Iterator[int]:
    """Attach a program that does nothing, or only reads the clock, to a tracepoint meanwhile; yields its id."""
    found = Btf.running_kernel().tracepoint(tracepoint)
    assert found is not None, tracepoint
    # r0 = 0, or r0 = bpf_ktime_get_ns(); exit
    first = (0x85, 0, 0, 5) if clock else (0xB7, 0, 0, 0)
    code = struct.pack("<BBhiBBhi", *first, 0x95, 0, 0, 0)
    descriptor = syscalls.load_program(syscalls.PROG_TYPE_TRACING, code, "bench_empty", found[0])
    link = syscalls.attach_raw_tracepoint(descriptor, None)
    try:
        fields = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
        yield int(fields.partition("prog_id:")[2].split()[0])
    finally:
        os.close(link)
        os.close(descriptor)


def children(pid: int) -> list[int]:
    """Return the processes that any thread of ``pid`` has started and that are still there."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def orphans(before: dict[str, set[int]], *, seconds: float = 5.0) -> dict[str, dict[int, str]]:
    """Return the objects that are new since ``before`` and in no other process's hands, by kind and id, with names.

    Waits up to ``seconds`` for them to go: the kernel frees some of them late. What others attach meanwhile is theirs.
    """
    import time

    deadline = time.monotonic() + seconds
    left = {kind: ids(kind) - before[kind] for kind in KINDS}
    while any(left.values()):
        others = _owned_by_others()
        left = {kind: (numbers & ids(kind)) - others[kind] for kind, numbers in left.items()}
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    names = {"prog": lambda numbers: {number: program(number).name for number in numbers}, "map": map_names}
    return {
        kind: names.get(kind, lambda numbers: dict.fromkeys(numbers, ""))(numbers)
        for kind, numbers in left.items()
        if numbers
    }


def _owned_by_others() -> dict[str, set[int]]:
    found: dict[str, set[int]] = {kind: set() for kind in KINDS}
    for path in Path("/proc").glob("[0-9]*"):
        if int(path.name) != os.getpid():
            for kind, numbers in owned(int(path.name)).items():
                found[kind] |= numbers
    return found


def all_ids() -> dict[str, set[int]]:
    """Return the ids of all programs, maps and links."""
    return {kind: ids(kind) for kind in KINDS}
