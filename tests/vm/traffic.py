"""Send UDP packets for ever, first at one rate, after ten seconds at another: ``traffic.py ADDRESS PPS THEN``."""

from __future__ import annotations

import contextlib
import socket
import sys
import time

_SLICE_S = 0.01
_FIRST_S = 10


def main() -> None:
    address, first, then = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    began = due = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
        # Enough for every ring: it is the card that stops the traffic, not the socket.
        sender.setsockopt(socket.SOL_SOCKET, 32, 8 << 20)  # SO_SNDBUFFORCE
        while True:
            rate = first if due - began < _FIRST_S else then
            for _ in range(int(rate * _SLICE_S)):
                # A queue that is full is what this is about.
                with contextlib.suppress(OSError):
                    sender.sendto(bytes(1000), (address, 9))
            due += _SLICE_S
            time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main()
