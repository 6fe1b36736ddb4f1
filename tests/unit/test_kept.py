"""Files that stay open: always what they say now, and nothing where there is nothing."""

from __future__ import annotations

import os
from pathlib import Path

from tracer.kernel.kept import Kept


def test_it_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("5\n")
    kept = Kept(str(path))
    assert (kept.number(), kept.read()) == (5, b"5\n")
    path.write_text("17 apples")
    assert (kept.number(), kept.read()) == (None, b"17 apples")
    kept.close()
    assert (kept.number(), kept.read()) == (None, None)


def test_all_of_it_is_read_and_no_more_than_there_is_room_for(tmp_path: Path) -> None:
    path = tmp_path / "long"
    for size, read in ((200_000, 200_000), (5 << 20, 1 << 20)):
        path.write_bytes(bytes(size))
        kept = Kept(str(path))
        assert len(kept.read() or b"") == read
        kept.close()


def test_what_is_not_there_or_cannot_be_read_is_none(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        kept = Kept(str(path))
        assert (kept.number(), kept.read()) == (None, None)
        kept.close()


def test_descriptors_do_not_leak(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        kept = Kept("/proc/meminfo")
        assert b"MemTotal" in (kept.read() or b"")
        kept.close()
        kept.close()
    assert len(os.listdir("/proc/self/fd")) == before
