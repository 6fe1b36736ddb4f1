"""What runs in the pods: ``python parts.py PART …``; needs nothing but the standard library."""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import time

_PORT = 9
_SENT = struct.Struct("<d")


def send(address: str, per_second: str) -> None:
    """Send datagrams that say when they were sent."""
    _called("job")
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    pause = 1 / float(per_second)
    while True:
        out.sendto(_SENT.pack(time.monotonic()) + bytes(400), (address, _PORT))
        time.sleep(pause)


def receive(address: str) -> None:
    """Take them, and at SIGTERM print how long each took and when it arrived, in s."""
    _called("job")
    found: list[tuple[float, float]] = []
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
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


def read(cpu: str, path: str, pause: str) -> None:
    """Read a file again and again, as monitoring does, on one CPU."""
    _called("arp-exporter")
    os.sched_setaffinity(0, {int(cpu)})
    while True:
        descriptor = os.open(path, os.O_RDONLY)
        while os.read(descriptor, 1 << 16):
            pass
        os.close(descriptor)
        time.sleep(float(pause))


def _called(name: str) -> None:
    with open("/proc/self/comm", "w") as comm:
        comm.write(name)


if __name__ == "__main__":
    {"send": send, "receive": receive, "read": read}[sys.argv[1]](*sys.argv[2:])
