"""Records of /dev/kmsg become rows: only the kernel's own, equal ones once, storms in part, gaps counted."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from tracer.kernel.sources import kernellog
from tracer.kernel.sources.kernellog import Source, parse_line

NOW = 10**12


@pytest.fixture
def log(monkeypatch):
    """A list of records, or error numbers, that reading /dev/kmsg gives one after the other."""
    records: list[bytes | int] = []

    def read(fd: int, size: int) -> bytes:
        record = records.pop(0) if records else errno.EAGAIN
        if isinstance(record, int):
            raise OSError(record, os.strerror(record))
        return record

    monkeypatch.setattr(kernellog, "_open", lambda: os.open("/dev/null", os.O_RDONLY))
    monkeypatch.setattr(kernellog.os, "read", read)
    return records


def record(serial: int, text: str, *, priority: int = 4, usec: int = 999_999_000) -> bytes:
    return f"{priority},{serial},{usec},-,caller=T7;{text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n".encode()


def read(source: Source) -> tuple[np.ndarray, dict[str, int]]:
    return source.read(NOW)["lines"]


def test_a_record_has_number_level_time_and_text():
    line = parse_line(record(12, "nvme nvme0: I/O 1 QID 5 timeout; aborting", priority=3))
    assert line == (12, 3, 999_999_000_000, b"nvme nvme0: I/O 1 QID 5 timeout; aborting")


@pytest.mark.parametrize("priority", [8, 12, 11, 30, 136])
def test_other_facilities_are_not_the_kernels(priority):
    assert parse_line(record(12, "NVRM: Xid (PCI:0000:3b:00): 79", priority=priority)) is None


@pytest.mark.parametrize("garbage", [b"", b"x", b"4,12", b"4,12,5;", b"-4,1,1,-;x", b"\xff\xfe;"])
def test_garbage_is_no_line(garbage):
    assert parse_line(garbage) is None


def test_equal_lines_are_one_row(log):
    log += [record(1, "a"), record(2, "b"), record(3, "a")]
    rows, losses = read(Source({}))
    assert rows[["serial", "text", "count"]].tolist() == [(1, b"a", 2), (2, b"b", 1)]
    assert losses == {"lost": 0, "left_out": 0, "unread": 0}


def test_what_was_overwritten_is_counted(log):
    source = Source({})
    log += [record(1, "a"), errno.EPIPE, record(9, "b")]
    assert read(source)[1]["lost"] == 7
    log += [record(10, "c", priority=30), record(11, "d")]
    assert read(source)[1]["lost"] == 0


def test_a_storm_of_one_shape_leaves_room_for_others(log):
    log += [record(n, f"eth0: bad frame {n} at 0x{n:x}") for n in range(500)]
    log += [record(500, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")]
    rows, losses = read(Source({}))
    assert len(rows) == 129 and losses["left_out"] == 372
    assert rows["text"][-1].startswith(b"NVRM: Xid")


def test_a_storm_of_all_shapes_is_bounded(log):
    names = ["".join(chr(97 + (n // 26**place) % 26) for place in range(3)) for n in range(900)]
    log += [record(n, f"x{name}z") for n, name in enumerate(names)]
    rows, losses = read(Source({}))
    assert len(rows) == 192 and losses["left_out"] == 900 - 192


def test_an_interval_reads_so_many_and_the_next_goes_on(log):
    log += [record(n, "a") for n in range(2500)]
    source = Source({})
    assert [int(read(source)[0]["count"].sum()) for _ in range(4)] == [1000, 1000, 500, 0]


def test_times_of_the_log_are_kept_where_they_can_be_right(log):
    source = Source({})
    source.read(NOW - 10**9)
    log += [record(1, "a", usec=(NOW - 5) // 1000), record(2, "b", usec=7), record(3, "c", usec=NOW)]
    assert read(source)[0]["time_ns"].tolist() == [(NOW - 5) // 1000 * 1000, NOW, NOW]


def test_long_lines_are_cut(log):
    log += [record(1, "x" * 5000)]
    assert read(Source({}))[0]["text"][0] == b"x" * 240


def test_a_log_that_cannot_be_read_says_so(monkeypatch):
    def refuse() -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(kernellog, "_open", refuse)
    assert "CAP_SYSLOG" in kernellog.refusal()
    rows, losses = read(Source({}))
    assert not len(rows) and losses["unread"] == 1
