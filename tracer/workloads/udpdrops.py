"""Datagrams that the kernel drops: nobody reads the socket they are sent to."""

from __future__ import annotations

import socket
from typing import Any

from tracer.workloads._child import Child, Work
from tracer.workloads._pace import portions
from tracer.workloads._process import Workload

__all__ = ["UdpDrops", "run"]

_SMALLEST_BUFFER = 1


class UdpDrops(Workload):
    """Sends ``per_second`` datagrams for ``seconds`` over loopback to a socket that is full. The result: ``sent``."""

    def __init__(self, seconds: float, *, per_second: float = 2000) -> None:
        super().__init__("udpdrops", seconds, count=int(seconds * per_second), per_second=per_second)


def run(child: Child, *, count: int, per_second: float) -> Work:
    """Prepare both sockets."""
    full = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALLEST_BUFFER)
    full.bind(("127.0.0.1", 0))
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect(full.getsockname())

    def work() -> dict[str, Any]:
        for portion in portions(count, per_second):
            for _ in range(portion):
                out.send(bytes(400))
        full.close()
        return {"sent": count}

    return work
