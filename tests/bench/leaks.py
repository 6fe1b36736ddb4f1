"""Attach and detach again and again: nothing may be left."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

from tracer.kernel import cpus
from tracer.kernel.job import Options, ordered
from tracer.kernel.session import attach
from tracer.probes import all_probes

from .machine import say
from .objects import all_ids, orphans
from .results import Check, Section

__all__ = ["attach_and_detach", "measure"]

TIMES = 200
GROWTH_TARGET = 1.0  # MB over all times


def attach_and_detach(times: int) -> dict[str, float]:
    """Attach all light probes and detach them, ``times`` times; returns what is left over and the seconds it took.

    ``resident_mb`` is the growth of this process from the third time on: the first ones fill caches.
    """
    every = all_probes()
    probes = ordered([probe for probe in every.values() if probe.tier == "light"], every)
    options = Options(cpus.possible_count(), cpus.online())
    before, descriptors = all_ids(), len(os.listdir("/proc/self/fd"))
    began = time.monotonic()
    resident = 0.0
    for number in range(times):
        attach(probes, options).close()
        if number == min(2, times - 1):
            gc.collect()
            resident = _resident_mb()
        if number % 20 == 19:
            say(f"leaks: {number + 1} of {times}")
    seconds = time.monotonic() - began
    gc.collect()
    left = orphans(before)
    return {
        "descriptors": len(os.listdir("/proc/self/fd")) - descriptors,
        "resident_mb": _resident_mb() - resident,
        "programs": len(left.get("prog", ())),
        "maps": len(left.get("map", ())),
        "links": len(left.get("link", ())),
        "seconds": seconds,
    }


def measure(rounds: int) -> Section:
    """Attach and detach 200 times."""
    del rounds  # many times already
    left = attach_and_detach(TIMES)
    grown = left["resident_mb"]
    section = Section("Attach and detach")
    objects = ("descriptors", "programs", "maps", "links")
    kept = ", ".join(f"{left[name]:.0f} {name}" for name in objects)
    section.checks = [
        Check(f"left over by {TIMES} attachments", kept, "none", not any(left[name] for name in objects)),
        Check(
            "memory grown by them",
            f"{grown:.1f} MB",
            f"≤ {GROWTH_TARGET} MB",
            grown <= GROWTH_TARGET,
        ),
    ]
    section.blocks.append(
        f"All light probes attached and detached {TIMES} times in one process, {left['seconds'] / TIMES:.2f} s each. "
        f"Left over: {kept}; resident memory grew by {grown:.2f} MB from the third time to the last."
    )
    return section


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
