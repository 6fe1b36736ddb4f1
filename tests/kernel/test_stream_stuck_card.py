"""The stream over a network card that does not tell what it has sent, as one whose interrupts a stuck CPU has."""

from __future__ import annotations

import ctypes
import fcntl
import struct
import subprocess
import threading
import time

from unit.fleet_samples import SECOND, Served, served
from unit.sink_samples import sample_alert

from tracer.alerts.engine import Identity
from tracer.sinks.stream import Stream

SIOCOUTQNSD = 0x894B
ALERTS = 5
CONNECTED_S = 10


def test_nothing_is_held_back_while_earlier_data_is_in_the_card(namespaces):
    unsent: list[int] = []
    name = namespaces()
    # A namespace is entered by one thread alone, and by those that it starts.
    thread = threading.Thread(target=lambda: unsent.extend(_unsent(name)))
    thread.start()
    thread.join()
    assert unsent == [0] * ALERTS


def _unsent(namespace: str) -> list[int]:
    """Return how many bytes the kernel has kept back after each of some alerts; a slow line takes the first."""
    with open(f"/run/netns/{namespace}") as file:
        assert ctypes.CDLL(None).setns(file.fileno(), 0) == 0
    with served(Served()) as there:
        stream = Stream("127.0.0.1", there.port, Identity("cu39", "b007", 0), SECOND, {}, lambda _: None)
        until = time.monotonic() + CONNECTED_S
        while stream.fileno() < 0 and time.monotonic() < until:
            stream.beat()
            time.sleep(0.01)
        slow = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "8kbit", "burst", "1600", "limit", "100000"]
        subprocess.run(slow, check=True)
        found = []
        for number in range(ALERTS):
            stream.send_now(sample_alert(name=str(number)))
            found.append(_not_sent(stream.fileno()))
        subprocess.run(["tc", "qdisc", "delete", "dev", "lo", "root"], check=True)
        stream.close()
    return found


def _not_sent(descriptor: int) -> int:
    (found,) = struct.unpack("i", fcntl.ioctl(descriptor, SIOCOUTQNSD, bytes(4)))
    return int(found)
