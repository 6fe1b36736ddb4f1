"""A loop device that can't be read: the kernel says so in its log, as of any drive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["broken_device", "fail_to_read"]


@pytest.fixture
def broken_device(tmp_path: Path) -> Iterator[str]:
    """A loop device whose file became empty."""
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(1 << 20))
    try:
        device = subprocess.run(
            ["losetup", "--find", "--show", disk], check=True, capture_output=True, text=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no loop device here: {error}")
    os.truncate(disk, 0)
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


def fail_to_read(device: str) -> None:
    read = ["dd", f"if={device}", "of=/dev/null", "bs=4k", "count=1", "skip=64", "iflag=direct"]
    subprocess.run(read, capture_output=True)
