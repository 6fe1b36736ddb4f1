"""The fingerprint of this machine, against other ways to know the same."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgpack

from tracer.kernel.fingerprint import read_fingerprint


def test_says_what_the_system_says():
    found = read_fingerprint()
    assert found["host"] == os.uname().nodename
    assert found["kernel"]["release"] == os.uname().release
    assert found["kernel"]["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found["cpu"]["online"] == Path("/sys/devices/system/cpu/online").read_text().strip()
    assert found["memory"]["total_kib"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
    assert found["sysctl"]["kernel.watchdog_thresh"] == Path("/proc/sys/kernel/watchdog_thresh").read_text().strip()
    assert abs(found["clocks"]["realtime_ns"] - time.time_ns()) < 5e9
    assert "unread" not in found


def test_lists_the_lines_of_proc_interrupts():
    with open("/proc/interrupts") as table:
        expected = {}
        for row in table:
            number, _, rest = row.partition(":")
            if number.strip().isdecimal():
                expected[int(number)] = rest.split("  ")[-1].strip().split()[-1]
    found = {line: name for line, name, _, _ in read_fingerprint()["interrupts"]["lines"]}
    assert found.keys() == expected.keys()
    assert all(found[line].split(",")[-1].split()[-1] == name for line, name in expected.items())


def test_knows_the_network_card():
    cards = read_fingerprint()["network"]["cards"]
    with_hardware = {path.parent.name for path in Path("/sys/class/net").glob("*/device")}
    assert cards.keys() == with_hardware
    for name, card in cards.items():
        assert card["mtu"] == int(Path(f"/sys/class/net/{name}/mtu").read_text())
        assert card["rx_queues"] >= 1 and card["driver"]


def test_is_quick_and_small():
    read_fingerprint()
    began = time.perf_counter()
    found = read_fingerprint()
    assert time.perf_counter() - began < 0.15
    assert len(msgpack.packb(found)) < 200_000
