"""Datagrams between two network namespaces that live and die with their processes; over loopback without them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any

from tracer.kernel import netns
from tracer.workloads._child import Child, Work
from tracer.workloads._pace import portions
from tracer.workloads._process import Workload

__all__ = ["Packets", "run"]

_LOOPBACK = "127.0.0.1"
#: How long the receiver waits for the next packet before it says that no more comes.
_PATIENCE_SECONDS = 0.3


class Packets(Workload):
    """Sends ``count`` datagrams of ``size`` bytes, at most ``per_second``.

    Through a veth pair between two namespaces of its own, if this node lets it, or if ``loopback`` over that.
    The result: ``sent``, ``received``, ``size``, ``path`` ("veth" or "loopback").
    """

    def __init__(self, count: int, *, size: int = 400, per_second: float = 5000, loopback: bool = False) -> None:
        super().__init__(
            "packets", count / per_second, count=count, size=size, per_second=per_second, loopback=loopback
        )


def run(child: Child, *, count: int, size: int, per_second: float, loopback: bool) -> Work:
    """Prepare both ends, each in its own process."""
    if not loopback and netns.can_pair():
        try:
            return _work("veth", *_veth(child), count, size, per_second)
        except OSError:
            pass  # a container, or a kernel without veth
    return _work("loopback", *_loopback(child), count, size, per_second)


def _work(path: str, out: socket.socket, answer: int, count: int, size: int, per_second: float) -> Work:
    def work() -> dict[str, Any]:
        for portion in portions(count, per_second):
            for _ in range(portion):
                out.send(bytes(size))
        received = json.loads(os.read(answer, 64))
        return {"sent": count, "received": received, "size": size, "path": path}

    return work


def _loopback(child: Child) -> tuple[socket.socket, int]:
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind((_LOOPBACK, 0))
    answer = _receiver(child, lambda: sink)
    return _sender(*sink.getsockname()), answer


def _veth(child: Child) -> tuple[socket.socket, int]:
    ready, connected = os.pipe(), os.pipe()

    def far_end() -> socket.socket:
        os.close(connected[1])
        netns.enter_new()
        os.write(ready[1], b"r")
        if not os.read(connected[0], 1):
            os._exit(1)
        netns.configure(netns.FAR)
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sink.bind((netns.FAR[0], 9))
        return sink

    answer, peer = _receiver_process(child, far_end)
    os.close(ready[1])
    if not os.read(ready[0], 1):
        raise OSError("no network namespace of our own")
    netns.enter_new()
    netns.connect(peer)
    netns.configure(netns.NEAR)
    os.write(connected[1], b"c")
    out = _sender(netns.FAR[0], 9)
    if os.read(answer, 1) != b"b":
        raise OSError("the far end could not be set up")
    return out, answer


def _receiver(child: Child, open_sink: Callable[[], socket.socket]) -> int:
    answer, _ = _receiver_process(child, open_sink)
    os.read(answer, 1)
    return answer


def _receiver_process(child: Child, open_sink: Callable[[], socket.socket]) -> tuple[int, int]:
    answer, told = os.pipe()

    def receive() -> None:
        os.close(answer)
        sink = open_sink()
        os.write(told, b"b")
        received = 0
        while True:
            try:
                sink.recv(65536)
            except TimeoutError:
                break
            received += 1
            sink.settimeout(_PATIENCE_SECONDS)
        os.write(told, json.dumps(received).encode())

    pid = child.fork("packets", receive)
    os.close(told)
    return answer, pid


def _sender(address: str, port: int) -> socket.socket:
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((address, port))
    return out
