"""napi: polls of known work, budget and length through the programs; real packets against /proc/net/softnet_stat."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel.driven import Driven
from kernel.traced import counted
from kernel.workload import UNSEEN, SoftirqsHeld

from tracer import histogram

SEND = """
import os, socket, sys
count, cpu = map(int, sys.argv[1:])
os.sched_setaffinity(0, {cpu})
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    out.connect(sink.getsockname())
    for _ in range(count):
        out.send(b"x")
"""


SEND_FAR = """
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(500):
    out.sendto(b"x", ("192.0.2.2", 9))
"""

# SIOCETHTOOL with the command argv[2] (0x2c: GRO, 0x1f: TSO) and value argv[3]: ethtool itself need not be installed.
ETHTOOL = """
import ctypes, fcntl, socket, struct, sys
value = ctypes.create_string_buffer(struct.pack("II", int(sys.argv[2]), int(sys.argv[3])))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any:
    fcntl.ioctl(any, 0x8946, struct.pack("16sQ16x", sys.argv[1].encode(), ctypes.addressof(value)))
"""


def inside(name: str, program: str, *arguments: object) -> str:
    """Run a Python program in a namespace and return what it prints."""
    command = ["ip", "netns", "exec", name, sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def send(name: str, count: int, cpu: int) -> None:
    """Send datagrams to the namespace's own loopback from ``cpu``: the CPU's backlog takes them."""
    inside(name, SEND, count, cpu)


def receive_on(name: str, cpu: int) -> None:
    """Hand what the namespace's loopback receives to ``cpu`` (RPS)."""
    inside(name, f"open('/sys/class/net/lo/queues/rx-0/rps_cpus', 'w').write('{1 << cpu:x}')")


def softnet() -> dict[int, tuple[int, int]]:
    """Return packets processed and time squeezes per CPU."""
    lines = [line.split() for line in Path("/proc/net/softnet_stat").read_text().splitlines()]
    return {int(fields[12], 16): (int(fields[0], 16), int(fields[2], 16)) for fields in lines}


def backlog(rows: np.ndarray, cpu: int) -> np.ndarray:
    return rows[(rows["device"] == b"backlog") & (rows["cpu"] == cpu)]


def test_work_of_the_backlog_is_what_softnet_stat_counts(attach, namespaces):
    cpu = min(os.sched_getaffinity(0))
    name = namespaces()
    traced = attach("napi")
    outer, _, inner = softnet(), traced.collect(), softnet()
    send(name, 2000, cpu)
    inner_end, window, outer_end = softnet(), traced.collect()["napi.poll"], softnet()
    work = int(backlog(window.rows, cpu)["work"].sum())
    assert work >= 2000 * (1 - UNSEEN)
    least, most = inner_end[cpu][0] - inner[cpu][0], outer_end[cpu][0] - outer[cpu][0]
    assert least * (1 - UNSEEN) <= work <= most
    (row,) = backlog(window.rows, cpu)
    assert (row["ifindex"], row["napi_id"], row["budget"]) == (0, 0, 64)
    assert row["polls"] <= work
    assert set(window.losses.values()) == {0}


def test_a_cpu_that_falls_behind_polls_in_full(attach, namespaces):
    sender, receiver = sorted(os.sched_getaffinity(0))[:2]
    name = namespaces()
    receive_on(name, receiver)
    traced = attach("napi")
    with SoftirqsHeld(receiver):
        send(name, 3000, sender)
    window = traced.collect()["napi.poll"]
    (row,) = backlog(window.rows, receiver)
    # A pile of more than a budget was worked off 64 at a time.
    assert row["full"] >= 3
    assert 2 <= row["streak_max"] <= row["full"]
    assert row["work"] >= 64 * row["full"]
    # Every full poll was followed by another one.
    assert abs(counted(row) - int(row["full"])) <= 1


def test_a_device_has_its_name_and_index(attach, namespaces):
    near, far = namespaces(), namespaces()
    ip("-n", near, "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", far)
    for name, device, address in ((near, "near0", "192.0.2.1/24"), (far, "far0", "192.0.2.2/24")):
        ip("-n", name, "address", "add", address, "dev", device)
    # veth polls through a NAPI of its own what can still be merged: GRO here, no TSO there.
    inside(far, ETHTOOL, "far0", 0x2C, 1)
    inside(near, ETHTOOL, "near0", 0x1F, 0)
    for name, device in ((near, "near0"), (far, "far0")):
        ip("-n", name, "link", "set", device, "up")
    index = int(inside(far, "print(open('/sys/class/net/far0/ifindex').read())"))
    traced = attach("napi")
    inside(near, SEND_FAR)
    rows = traced.collect()["napi.poll"].rows
    mine = rows[rows["device"] == b"far0"]
    assert set(mine["ifindex"]) == {index} and (mine["budget"] == 64).all() and (mine["napi_id"] > 0).all()
    assert int(mine["work"].sum()) >= 490


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


NAPI = 0x1000  # no address: device and id read as nothing, which makes it a backlog


@pytest.fixture
def driven() -> Iterator[Driven]:
    driven = Driven("napi")
    yield driven
    driven.close()


@pytest.fixture
def poll(driven) -> Callable[..., None]:
    def poll(work: int, budget: int = 77, napi: int = NAPI) -> None:
        driven.run("on_napi_poll", napi, work, budget)

    return poll


def of_budget(rows: np.ndarray, budget: int = 77) -> np.void:
    (row,) = rows[rows["budget"] == budget]
    return row


def test_counts_work_full_polls_and_streaks(driven, poll):
    for work in (77, 77, 77, 5, 0, 77, 80, 3):
        poll(work)
    row = of_budget(driven.rows("napi.poll"))
    assert (row["polls"], row["work"], row["full"]) == (8, 396, 5)
    assert (row["streak_max"], row["streak"]) == (3, 0)
    assert counted(row) == 5
    assert row["device"] == b"backlog"


def test_a_streak_goes_on_from_interval_to_interval(driven, poll):
    poll(77)
    poll(77)
    assert of_budget(driven.rows("napi.poll"))["streak"] == 2
    poll(77)
    row = of_budget(driven.rows("napi.poll"))
    assert (row["full"], row["streak"], row["streak_max"]) == (1, 3, 3)
    poll(0)
    row = of_budget(driven.rows("napi.poll"))
    assert (row["polls"], row["streak"], row["streak_max"]) == (1, 0, 0)


def test_the_longest_streak_is_of_the_interval(driven, poll):
    for work in (77, 77, 77, 0):
        poll(work)
    assert of_budget(driven.rows("napi.poll"))["streak_max"] == 3
    for work in (77, 0):
        poll(work)
    assert of_budget(driven.rows("napi.poll"))["streak_max"] == 1


def test_the_gap_is_the_time_from_a_full_poll_to_the_next(driven, poll):
    poll(77)
    time.sleep(0.05)
    poll(1)
    time.sleep(0.05)
    poll(1)  # not after a full one: no gap
    row = of_budget(driven.rows("napi.poll"))
    assert counted(row) == 1
    assert 50e6 <= int(row["sum"]) < 50e6 + 100e6
    assert int(row["sum"]) <= histogram.max_ns(row["slots"])


def test_a_gap_ends_with_another_budget_too(driven, poll):
    poll(8, budget=8)
    poll(5, budget=77)
    rows = driven.rows("napi.poll")
    assert counted(of_budget(rows, 8)) == 0
    assert counted(of_budget(rows, 77)) == 1


def test_budgets_are_told_apart_and_netpoll_is_never_full(driven, poll):
    poll(8, budget=8)
    poll(8, budget=77)
    poll(0, budget=0)
    rows = driven.rows("napi.poll")
    assert [int(of_budget(rows, budget)["full"]) for budget in (8, 77, 0)] == [1, 0, 0]


def test_more_napis_than_rows_go_to_other_and_are_told(driven, poll):
    for number in range(300):
        poll(1, napi=NAPI + 512 * number)
    window = driven.window("napi.poll")
    made = window.rows[window.rows["budget"] == 77]
    (other,) = window.rows[window.rows["device"] == b"other"]
    assert 40 <= len(made) <= 64
    assert other["polls"] == window.losses["folded"] >= 300 - len(made)
    assert int(made["polls"].sum() + other["polls"]) >= 300


def test_a_row_long_idle_is_given_to_another_napi(driven, poll):
    for number in range(200):
        poll(77, napi=NAPI + 512 * number)
    live = driven.session.array("napi_rows")
    live["used_ns"][live["budget"] == 77] = 1  # as if used last at boot
    # Only now: until then a real one that came for the first time found no place, either.
    driven.rows("napi.poll")
    for _ in range(3):
        poll(2, budget=33, napi=NAPI + (1 << 20))
    window = driven.window("napi.poll")
    row = of_budget(window.rows, 33)
    assert (row["polls"], row["work"], row["full"], row["streak_max"]) == (3, 6, 0, 0)
    assert window.losses["folded"] == 0


def test_full_napis_are_followed_apart_until_places_run_out(driven, poll):
    for _ in range(2):
        for number in range(60):
            poll(77, napi=NAPI + 512 * number)
    window = driven.window("napi.poll")
    assert counted(window.rows[(window.rows["budget"] == 77) | (window.rows["device"] == b"other")]) == 60
    assert (window.losses["collided"], window.losses["negative"]) == (0, 0)
