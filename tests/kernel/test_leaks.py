"""Attaching and detaching again and again leaves no descriptor, memory, program, map or link."""

from __future__ import annotations

from bench.leaks import attach_and_detach


def test_ten_times_leave_nothing():
    left = attach_and_detach(10)
    assert {name: left[name] for name in ("descriptors", "programs", "maps", "links")} == {
        "descriptors": 0,
        "programs": 0,
        "maps": 0,
        "links": 0,
    }
    # Seven attachments after the caches are filled: one that kept its maps would show as megabytes.
    assert left["resident_mb"] < 2
