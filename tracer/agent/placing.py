"""Where sentinels live: on different CPUs, cores and sockets, and never where a job wants to be alone."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from tracer.kernel import cpus

__all__ = ["Place", "choose", "housekeeping", "topology"]

_SYS = Path("/sys/devices/system/cpu")

#: Socket and core of a CPU.
Place = tuple[int, int]


def housekeeping() -> set[int]:
    """Return the CPUs that this process may use, that are online, and neither isolated nor nohz_full."""
    return (os.sched_getaffinity(0) & set(cpus.online())) - cpus.undisturbed()


def topology(of: Collection[int]) -> dict[int, Place]:
    """Return socket and core of each CPU; what the kernel does not say counts as one socket, and cores of their own."""
    return {cpu: (_number(cpu, "physical_package_id", 0), _number(cpu, "core_id", cpu)) for cpu in of}


def choose(places: Mapping[int, Place], count: int, taken: Collection[int] = ()) -> list[int]:
    """Return up to ``count`` CPUs of ``places``, each as far from the others and from those ``taken`` as can be."""
    chosen: list[int] = []
    while len(chosen) < count:
        others = [*taken, *chosen]
        free = [cpu for cpu in sorted(places) if cpu not in others]
        if not free:
            break
        chosen.append(max(free, key=lambda cpu: _distance(cpu, others, places)))
    return chosen


def _distance(cpu: int, others: Collection[int], places: Mapping[int, Place]) -> tuple[int, ...]:
    """Return how far ``cpu`` is from the nearest: socket, core, and last by number, where neighbours share caches."""
    apart = [
        (places[cpu][0] != places[other][0], places[cpu] != places[other], abs(cpu - other))
        for other in others
        if other in places
    ]
    return min(apart, default=(0,))


def _number(cpu: int, name: str, otherwise: int) -> int:
    try:
        return int((_SYS / f"cpu{cpu}" / "topology" / name).read_text())
    except (OSError, ValueError):
        return otherwise
