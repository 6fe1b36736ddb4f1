"""What a probe declares: what it needs from the kernel, and the tables it fills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

__all__ = ["Tracepoint", "Vectors", "Clock", "Hook", "Member", "Map", "Table", "Events", "Loss", "Probe", "Column"]


@dataclass(frozen=True)
class Tracepoint:
    """One kernel tracepoint, handled by ``<probe>_on_<event>`` in ``bpf/<probe>.bpf.c``.

    ``args`` are the leading argument types as BTF spells them (``"struct task_struct *"``, ``"int"``,
    ``"bool"``); a kernel whose prototype starts otherwise is refused rather than misread.
    An ``optional`` tracepoint may be missing: the probe runs without what it would add.
    """

    name: str
    args: tuple[str, ...]
    optional: bool = False

    @property
    def event(self) -> str:
        """The name without its system: ``sched_switch`` for ``sched:sched_switch``."""
        return self.name.partition(":")[2]


@dataclass(frozen=True)
class Vectors:
    """The x86 interrupt vectors' tracepoints, all ``irq_vectors:*_entry`` or all ``*_exit``, through one handler.

    ``edge`` is "entry" or "exit"; the handler is ``<probe>_on_vector_<edge>``. Absent on other architectures.
    """

    edge: Literal["entry", "exit"]
    optional: bool = True

    @property
    def event(self) -> str:
        return f"vector_{self.edge}"


@dataclass(frozen=True)
class Clock:
    """A software clock event on every traced CPU, ``hz`` times a second; handled by ``<probe>_on_clock``."""

    hz: int
    optional: bool = False

    @property
    def event(self) -> str:
        return "clock"


Hook = Tracepoint | Vectors | Clock


@dataclass(frozen=True)
class Member:
    """A kernel struct member, read at the running kernel's BTF offset.

    ``Member("task_struct.on_rq")`` becomes ``-DTASK_STRUCT__ON_RQ=<bytes>``; a dotted path may go
    through embedded structs. A missing ``optional`` member is left undefined: test it with ``#ifdef``.
    """

    path: str
    optional: bool = False


@dataclass(frozen=True)
class Map:
    """A memory-mapped array of ``struct <layout>``, one row per element of ``axes``.

    ``axes`` multiply out to the number of rows: "cpu" is the number of possible CPUs, any other name is a
    constant of ``bpf/<probe>.h``, lower-cased by the reader when it becomes a column (``SOFTIRQ_VECTORS``).
    """

    name: str
    layout: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table as people see it: its unit and what it means."""

    name: str
    unit: str
    help: str


@dataclass(frozen=True)
class Table:
    """Rows made from a map: index columns, copied keys, differenced counters, one differenced histogram.

    ``by`` names the map's axes as columns, one per axis; an axis named "" is dropped (rows of it are told
    apart by ``keys``). ``histogram`` is a ``struct hist`` member. ``used`` is a key that is 0 in an unused row.
    ``derive`` replaces the generic difference for tables that need more (see ``cpustate``).
    """

    name: str
    help: str
    map: str = ""
    by: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    gauges: tuple[str, ...] = ()
    histogram: str = ""
    used: str = ""
    columns: tuple[Column, ...] = ()
    derive: Callable[..., np.ndarray] | None = None


@dataclass(frozen=True)
class Events:
    """Rare single events through the ring buffer; ``layout`` is their C struct, which starts with ``struct event``.

    ``decode`` turns raw events (a structured array of the layout) into the table's rows. ``(events, names)``
    where ``names`` resolves what only the node knows (cgroup paths, pids). Default: the layout as it is.
    """

    name: str
    help: str
    layout: str
    columns: tuple[Column, ...] = ()
    decode: Callable[..., np.ndarray] | None = None


@dataclass(frozen=True)
class Loss:
    """A counter of what a probe missed: ``reason`` as shown, summed over ``field`` of every row of ``map``."""

    reason: str
    map: str
    field: str
    help: str


@dataclass(frozen=True)
class Probe:
    """One probe: a name in ``bpf/<name>.h``, ``bpf/<name>.bpf.c``, ``tracer/probes/<name>.py`` and its test.

    A probe without kernel code has ``source`` instead of hooks: the module ``tracer.kernel.sources.<source>``
    is polled once per interval.
    """

    name: str
    summary: str
    tier: Literal["light", "deep"]
    tables: tuple[Table | Events, ...]
    hooks: tuple[Hook, ...] = ()
    members: tuple[Member, ...] = ()
    maps: tuple[Map, ...] = ()
    requires: tuple[str, ...] = ()
    settings: dict[str, int] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    source: str = ""
    aliases: tuple[str, ...] = ()
    overhead: str = ""
    caveats: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
