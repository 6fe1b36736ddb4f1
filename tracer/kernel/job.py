"""What the loader is asked to do, worked out from the probes' declarations."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracer.kernel import thread_flags
from tracer.layouts import bpf_folder, constants, layouts
from tracer.probe import Clock, Events, Hook, Map, Probe, Tracepoint, Vectors

__all__ = ["MOST_SENTINELS", "Options", "MapShape", "ordered", "map_shapes", "event_kinds", "job"]

#: Room for single events: a few hundred of the largest. Lost ones are counted.
RING_PAGES = 256
#: Of each sentinel's own ring: one event of each of 190 CPUs.
SENTINEL_RING_PAGES = 16
#: bpf/foreshock.bpf.h has so many rings for them.
MOST_SENTINELS = 2


@dataclass(frozen=True)
class Options:
    """What the user narrows: everything else is the probes' own business.

    ``cpus`` None means all; ``constants`` override the probes' settings. ``sentinels`` is the number of processes
    that have alarms told to rings of their own, up to ``MOST_SENTINELS``.
    """

    cpu_count: int
    clock_cpus: Sequence[int]
    cpus: frozenset[int] | None = None
    constants: Mapping[str, int] = field(default_factory=dict)
    sentinels: int = 0

    @property
    def sentinel_rings(self) -> tuple[str, ...]:
        """The names of their rings."""
        return tuple(f"sentinel_{number}" for number in range(self.sentinels))


@dataclass(frozen=True)
class MapShape:
    """A map as it will be created: its row layout and the lengths of its axes."""

    dtype: np.dtype
    axes: tuple[tuple[str, int], ...]

    @property
    def rows(self) -> int:
        return math.prod(length for _, length in self.axes)


#: Maps of bpf/foreshock.bpf.h itself, which every program uses.
_BASE_MAPS = (Map("hist_edges_table", "hist_edges", ()),)


def ordered(probes: Iterable[Probe], every: Mapping[str, Probe]) -> list[Probe]:
    """Return ``probes`` with what they require, required ones first: handlers run in this order."""
    result: dict[str, Probe] = {}

    def add(probe: Probe) -> None:
        for name in probe.requires:
            add(every[name])
        result.setdefault(probe.name, probe)

    for probe in probes:
        add(probe)
    return list(result.values())


def map_shapes(probes: Sequence[Probe], cpu_count: int) -> dict[str, MapShape]:
    """Return the shape of every mapped array the probes declare."""
    shapes: dict[str, MapShape] = {}
    for probe in probes:
        if not probe.hooks:
            continue
        known, structs = constants(probe.name), layouts(probe.name)
        for declared in (*_BASE_MAPS, *probe.maps):
            axes = tuple((axis, cpu_count if axis == "cpu" else known[axis]) for axis in declared.axes)
            shapes[declared.name] = MapShape(structs[declared.layout], axes)
    return shapes


def event_kinds(probes: Sequence[Probe]) -> dict[int, tuple[Probe, Events]]:
    """Number the probes' events: the kind that the kernel writes into each."""
    declared = [(probe, table) for probe in probes for table in probe.tables if isinstance(table, Events)]
    return dict(enumerate(declared, start=1))


def job(probes: Sequence[Probe], options: Options) -> dict[str, Any]:
    """Return the loader's job as a JSON value; ``probes`` in the order of ``ordered``."""
    numbers: dict[str, int] = {"NR_CPUS": options.cpu_count, "RING_PAGES": RING_PAGES, "PAGE_SIZE": mmap.PAGESIZE}
    numbers.update(SENTINELS=options.sentinels, SENTINEL_RING_PAGES=SENTINEL_RING_PAGES)
    numbers.update(thread_flags.constants())
    for probe in probes:
        numbers.update(probe.settings)
    numbers.update({table.macro: kind for kind, (_, table) in event_kinds(probes).items()})
    numbers.update(options.constants)
    folder = bpf_folder().resolve()
    return {
        "headers": str(folder / "headers"),
        "bpf": str(folder),
        "constants": numbers,
        "clock_cpus": list(options.clock_cpus),
        "maps": {name: _layout(shape.dtype) for name, shape in map_shapes(probes, options.cpu_count).items()},
        "plain_maps": ["events", *options.sentinel_rings, *(name for probe in probes for name in probe.plain_maps)],
        "probes": [_probe(probe) for probe in probes if probe.hooks],
    }


def _layout(dtype: np.dtype) -> dict[str, Any]:
    fields: Mapping[str, Any] = dtype.fields or {}
    return {"size": dtype.itemsize, "fields": {name: entry[1] for name, entry in fields.items()}}


def _probe(probe: Probe) -> dict[str, Any]:
    return {
        "name": probe.name,
        "requires": list(probe.requires),
        "enums": [[*enum, False] for enum in probe.enums] + [[*enum, True] for enum in probe.optional_enums],
        "members": [
            {
                "macro": member.macro,
                "paths": [member.path, *member.otherwise],
                "optional": member.optional,
                "bit": member.bit,
            }
            for member in probe.members
        ],
        "hooks": [_hook(hook) for hook in probe.hooks],
    }


def _hook(hook: Hook) -> dict[str, Any]:
    common = {"event": hook.event, "optional": hook.optional, "everywhere": hook.everywhere, "hz": 0, "timed": True}
    if isinstance(hook, Clock):
        return {**common, "type": "clock", "tracepoints": [], "args": [], "hz": hook.hz}
    if isinstance(hook, Vectors):
        return {**common, "type": "raw", "tracepoints": list(hook.tracepoints), "args": ["int"]}
    assert isinstance(hook, Tracepoint)
    common["timed"] = hook.timed
    return {**common, "type": "btf", "tracepoints": [hook.event], "args": list(hook.args)}
