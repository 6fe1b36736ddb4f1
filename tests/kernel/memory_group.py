"""A memory cgroup that is too small for what a process in it wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["EAT", "small_group"]

#: A program that uses 256 MiB.
EAT = "import mmap\nwith mmap.mmap(-1, 1 << 28) as m:\n for at in range(0, len(m), 4096): m[at] = 1"
_LIMIT = 24 << 20


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory cgroup of 24 MiB."""
    v1 = Path("/sys/fs/cgroup/memory")
    root = v1 if v1.is_dir() else Path("/sys/fs/cgroup")
    group = root / "foreshock-test"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made: {error.strerror}")
    try:
        limit = group / ("memory.limit_in_bytes" if v1.is_dir() else "memory.max")
        if not limit.exists():
            pytest.skip("the memory controller is not on")
        limit.write_text(str(_LIMIT))
        yield group
    finally:
        group.rmdir()
