"""kernellog: lines of the kernel's own, made by harmless means, and lines that a process wrote, which are left out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel.loops import broken_device, fail_to_read

from tracer.kernel.sources import kernellog
from tracer.kernel.sources.kernellog import Source

__all__ = ["broken_device"]

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."


@pytest.fixture
def source() -> Iterator[Source]:
    if kernellog.refusal():
        pytest.skip(kernellog.refusal())
    source = Source({})
    source.read(time.monotonic_ns())
    yield source
    source.close()


def lines(source: Source) -> np.ndarray:
    return source.read(time.monotonic_ns())["lines"][0]


def test_the_kernels_own_lines(source, broken_device):
    before_ns = time.monotonic_ns()
    fail_to_read(broken_device)
    rows = lines(source)
    told = rows[np.char.find(rows["text"], f"dev {Path(broken_device).name}".encode()) >= 0]
    assert len(told) >= 1 and b"I/O error" in told[0]["text"]
    assert told[0]["level"] == 3
    assert abs(int(told[0]["time_ns"]) - before_ns) < 2e9
    assert np.all(np.diff(rows["serial"].astype("i8")) > 0)
    assert not len(lines(source))


@pytest.mark.parametrize("priority", ["", "<2>", "<11>", "<8>", "<136>"])
def test_lines_of_processes_are_left_out(source, priority):
    with open("/dev/kmsg", "w") as log:
        log.write(f"{priority}{XID}\n")
    assert not any(b"Xid" in row["text"] for row in lines(source))


def test_not_even_root_can_take_the_kernels_facility(source):
    """Facility 0 in what is written becomes 1, user."""
    with open("/dev/kmsg", "w") as log:
        log.write(f"<0>{XID}\n")
    assert not any(b"Xid" in row["text"] for row in lines(source))


def test_what_was_logged_before_is_not_told():
    source = Source({})
    rows, losses = source.read(time.monotonic_ns())["lines"]
    source.close()
    assert not len(rows)
    assert losses == {"lost": 0, "left_out": 0, "unread": 0}
