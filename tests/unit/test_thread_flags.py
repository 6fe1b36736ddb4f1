"""Which bit says that another task is due: known, or not claimed."""

from __future__ import annotations

import pytest

from tracer.kernel.thread_flags import need_resched_bit


@pytest.mark.parametrize(
    ("machine", "release", "bit"),
    [
        ("x86_64", "4.18.0-553.el8.x86_64", 3),
        ("x86_64", "6.12.48+deb13-amd64", 3),
        ("x86_64", "6.17.9", 3),
        ("x86_64", "6.18.0-rc1", 4),
        ("x86_64", "7.2.1-1-generic", 4),
        ("x86_64", "unknown", None),
        ("aarch64", "6.18.3", None),
        ("riscv64", "6.18.3", None),
    ],
)
def test_the_bit_is_the_releases(machine: str, release: str, bit: int | None) -> None:
    assert need_resched_bit(machine, release) == bit
