"""netdev: datagrams of a known number and size between two namespaces, against the source and /proc/net/dev."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tracer.kernel.sources.netdev import Source

CLONE_NEWNET = 0x40000000
HEADERS = 14 + 20 + 8  # Ethernet, IPv4, UDP
SEND = """
import socket, sys
count, size = int(sys.argv[1]), int(sys.argv[2])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    for _ in range(count):
        out.sendto(bytes(size), ("192.0.2.2", 9))
"""
SINK = """
import socket, sys
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("192.0.2.2", 9))
print("bound", flush=True)
sys.stdin.read()
"""


class Pair:
    """Two namespaces with ``v0`` in the near one and ``v1`` in the far one, and nothing but our datagrams between."""

    def __init__(self, near: str, far: str) -> None:
        self.near, self.far = near, far
        for name in (near, far):
            # Neighbour discovery would add packets of its own.
            self.inside(
                name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"
            )
        self.connect()

    def connect(self, *options: str) -> None:
        ip("-n", self.near, "link", "add", "v0", *options, "type", "veth", "peer", "name", "v1", "netns", self.far)
        for name, device, address in ((self.near, "v0", "192.0.2.1/24"), (self.far, "v1", "192.0.2.2/24")):
            ip("-n", name, "address", "add", address, "dev", device)
            ip("-n", name, "link", "set", device, "up")
        peer = self.inside(self.far, "cat", "/sys/class/net/v1/address").strip()
        ip("-n", self.near, "neighbour", "replace", "192.0.2.2", "dev", "v0", "lladdr", peer, "nud", "permanent")

    def send(self, count: int, size: int) -> None:
        self.inside(self.near, sys.executable, "-c", SEND, str(count), str(size))

    def proc(self, device: str) -> tuple[int, int]:
        """Return (bytes, packets) sent according to /proc/net/dev in the near namespace."""
        (line,) = [
            line for line in self.inside(self.near, "cat", "/proc/net/dev").splitlines() if f" {device}:" in line
        ]
        fields = line.partition(":")[2].split()
        return int(fields[8]), int(fields[9])

    @staticmethod
    def inside(name: str, *command: str) -> str:
        return subprocess.run(
            ["ip", "netns", "exec", name, *command], check=True, capture_output=True, text=True
        ).stdout


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def open_inside(name: str) -> Source:
    """Open a source in a namespace: sockets stay where they were opened, so a thread goes there and ends."""
    opened: list[Source] = []

    def enter() -> None:
        with open(f"/run/netns/{name}") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        opened.append(Source({}))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return opened[0]


def row(rows: np.ndarray, device: bytes) -> np.void:
    (found,) = rows[rows["device"] == device]
    return found


@pytest.fixture
def pair(namespaces: Callable[[], str]) -> Iterator[Pair]:
    pair = Pair(namespaces(), namespaces())
    sink = subprocess.Popen(
        ["ip", "netns", "exec", pair.far, sys.executable, "-c", SINK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert sink.stdin is not None and sink.stdout is not None
    sink.stdout.readline()
    yield pair
    sink.communicate(timeout=10)


@pytest.fixture
def source(pair: Pair) -> Iterator[Source]:
    source = open_inside(pair.near)
    yield source
    source.close()


def test_counts_datagrams_as_proc_net_dev_does(pair, source):
    rows, losses = source.read(0)["link"]
    assert len(rows) == 0 and set(losses.values()) == {0}
    before = pair.proc("v0")
    pair.send(count=23, size=100)
    rows, losses = source.read(0)["link"]
    after = pair.proc("v0")
    v0 = row(rows, b"v0")
    assert v0["tx_packets"] == 23 == after[1] - before[1]
    assert v0["tx_bytes"] == 23 * (100 + HEADERS) == after[0] - before[0]
    assert v0["rx_packets"] == v0["tx_dropped"] == v0["carrier_changes"] == 0
    assert (v0["driver"], v0["state"], v0["carrier"], v0["speed_mbps"]) == (b"veth", b"up", 1, 10_000)
    assert set(losses.values()) == {0}
    assert row(source.read(0)["link"][0], b"v0")["tx_packets"] == 0


def test_a_device_made_anew_with_the_same_name_and_index_begins_anew(pair, source):
    source.read(0)
    pair.send(count=5, size=100)
    index = row(source.read(0)["link"][0], b"v0")["ifindex"]
    ip("-n", pair.near, "link", "delete", "v0")
    pair.connect("index", str(index))
    pair.send(count=50, size=100)  # more than before, so that the counters alone don't tell
    rows, losses = source.read(0)["link"]
    assert b"v0" not in rows["device"]
    assert (losses["appeared"], losses["gone"], losses["reset"]) == (1, 1, 0)
    pair.send(count=7, size=100)
    rows, losses = source.read(0)["link"]
    assert row(rows, b"v0")["tx_packets"] == 7 and set(losses.values()) == {0}


def test_follows_links_that_go_down(pair, source):
    source.read(0)
    ip("-n", pair.far, "link", "set", "v1", "down")
    # The kernel's link watcher speaks at most once a second, unless the link came up.
    deadline = time.monotonic() + 5
    while (v0 := row(source.read(0)["link"][0], b"v0"))["carrier"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (v0["carrier"], v0["carrier_changes"], v0["speed_mbps"]) == (0, 1, 0)
    assert v0["state"] in (b"down", b"lowerlayerdown")
    ip("-n", pair.near, "link", "set", "v0", "down")
    assert row(source.read(0)["link"][0], b"v0")["state"] == b"off"


def test_survives_lost_notifications(pair, source):
    source.read(0)
    news = source._links._socket._news
    news.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    for number in range(20):
        ip("-n", pair.near, "link", "add", f"d{number}", "type", "veth")
    pair.send(count=3, size=100)
    rows, losses = source.read(0)["link"]
    assert row(rows, b"v0")["tx_packets"] == 3 and losses["appeared"] == 40
    rows, losses = source.read(0)["link"]
    assert {f"d{number}".encode() for number in range(20)} <= set(rows["device"].tolist())


def test_takes_names_as_they_are(pair, source):
    name = b"a\x1b[31m\xff"
    source.read(0)
    subprocess.run([b"ip", b"-n", os.fsencode(pair.near), b"link", b"set", b"v0", b"name", name], capture_output=True)
    rows, losses = source.read(0)["link"]
    assert (losses["appeared"], losses["gone"]) == (1, 1)
    assert name in source.read(0)["link"][0]["device"].tolist()


def test_rows_are_bounded(pair):
    for number in range(5):
        ip("-n", pair.near, "link", "add", f"d{number}", "type", "veth")
    source = open_inside(pair.near)
    source._max_devices = 2
    source.read(0)
    pair.send(count=3, size=100)
    rows, losses = source.read(0)["link"]
    source.close()
    assert len(rows) == 2 and b"v0" in rows["device"]
    assert losses["left_out"] == 10


def test_leaves_no_thread_and_no_descriptor(pair):
    before = set(os.listdir("/proc/self/fd")), threading.active_count()
    source = open_inside(pair.near)
    source.read(0)
    source.close()
    assert (set(os.listdir("/proc/self/fd")), threading.active_count()) == before
