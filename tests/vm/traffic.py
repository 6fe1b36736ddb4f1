"""Send UDP packets for ever, first at one rate, after ten seconds at another: ``traffic.py ADDRESS PPS THEN``."""

from __future__ import annotations

import socket
import sys
import time
from contextlib import ExitStack, suppress
from itertools import cycle, islice

_SLICE_S = 0.01
_FIRST_S = 10
#: Enough for every queue to have some.
_FLOWS = 16


def main() -> None:
    address, first, then = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    began = due = time.monotonic()
    with ExitStack() as stack:
        senders = cycle([stack.enter_context(_sender()) for _ in range(_FLOWS)])
        while True:
            rate = first if due - began < _FIRST_S else then
            for sender in islice(senders, int(rate * _SLICE_S)):
                # A queue that is full is what this is about.
                with suppress(OSError):
                    sender.sendto(bytes(1000), (address, 9))
            due += _SLICE_S
            time.sleep(max(0.0, due - time.monotonic()))


def _sender() -> socket.socket:
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    # Enough for every ring: it is the card that stops the traffic, not the socket.
    sender.setsockopt(socket.SOL_SOCKET, 32, 8 << 20)  # SO_SNDBUFFORCE
    return sender


if __name__ == "__main__":
    main()
