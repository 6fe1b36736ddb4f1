"""What runs in the pods: ``python parts.py PART …``; needs nothing but the standard library."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator

_PORT = 9
_SENT = struct.Struct("<d")
#: Source: include/uapi/asm-generic/mman.h. Python has it from 3.10 on, but not everywhere.
_MAP_POPULATE = 0x8000


def send(address: str, per_second: str, priority: str = "0") -> None:
    """Send datagrams that say when they were sent, at a real-time priority unless that is 0."""
    _called("job", int(priority))
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    pause = 1 / float(per_second)
    while True:
        out.sendto(_SENT.pack(time.monotonic()) + bytes(400), (address, _PORT))
        time.sleep(pause)


def receive(address: str, priority: str = "0") -> None:
    """Take them, and at SIGTERM print how long each took and when it arrived, in s."""
    _called("job", int(priority))
    found: list[tuple[float, float]] = []
    stop = _told_to_stop()
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind((address, _PORT))
    sink.settimeout(0.2)
    while not stop:
        try:
            data = sink.recv(2048)
        except TimeoutError:
            continue
        now = time.monotonic()
        found.append((now, now - _SENT.unpack_from(data)[0]))
    for now, took in found:
        print(f"{now:.6f} {took:.6f}")


def read(cpu: str, path: str, pause: str, name: str = "arp-exporter") -> None:
    """Read a file again and again, as monitoring does, on one CPU; at SIGTERM print how long each time took, in s."""
    _called(name)
    os.sched_setaffinity(0, {int(cpu)})
    stop, took = _told_to_stop(), []
    while not stop:
        began = time.monotonic()
        descriptor = os.open(path, os.O_RDONLY)
        while os.read(descriptor, 1 << 16):
            pass
        os.close(descriptor)
        took.append(time.monotonic() - began)
        time.sleep(float(pause))
    for seconds in took:
        print(f"{seconds:.6f}")


def leave(hierarchy: str, path: str, cgroups: str) -> None:
    """Make a file of so many pages, each charged to a memory cgroup of its own that is gone then."""
    root = f"{hierarchy}/cgroup.procs"
    with _file_of(path) as descriptor:
        os.ftruncate(descriptor, int(cgroups) * mmap.PAGESIZE)
        for number in range(int(cgroups)):
            folder = f"{hierarchy}/foreshock-gone/{number}"
            os.mkdir(folder)
            _write(f"{folder}/cgroup.procs", "0")
            os.pwrite(descriptor, b"x", number * mmap.PAGESIZE)
            _write(root, "0")
            os.rmdir(folder)


def load(cpu: str, path: str, pause: str) -> None:
    """Map all of a file and unmap it, again and again, on one CPU: as many cgroups as own its pages have changed."""
    _called("loader")
    os.sched_setaffinity(0, {int(cpu)})
    stop = _told_to_stop()
    with _file_of(path) as descriptor:
        while not stop:
            mmap.mmap(descriptor, 0, flags=mmap.MAP_SHARED | _MAP_POPULATE).close()
            time.sleep(float(pause))


@contextlib.contextmanager
def _file_of(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _told_to_stop() -> list[int]:
    """Return a list that is empty until SIGTERM comes."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    return stop


def _called(name: str, priority: int = 0) -> None:
    _write("/proc/self/comm", name)
    if priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    parts = {"send": send, "receive": receive, "read": read, "leave": leave, "load": load}
    parts[sys.argv[1]](*sys.argv[2:])
