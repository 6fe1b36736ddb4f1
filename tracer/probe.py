"""What a probe declares: what it needs from the kernel, and the tables it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

__all__ = [
    "SOFTIRQS",
    "VECTORS",
    "Tracepoint",
    "Vectors",
    "Clock",
    "Hook",
    "Member",
    "Map",
    "Table",
    "Events",
    "Loss",
    "Probe",
    "Column",
]


@dataclass(frozen=True)
class Tracepoint:
    """One kernel tracepoint, handled by ``<probe>_on_<event>`` in ``bpf/<probe>.bpf.c``.

    ``args`` are the leading argument types as BTF spells them (``"struct task_struct *"``, ``"int"``,
    ``"bool"``); a kernel whose prototype starts otherwise is refused rather than misread.
    An ``optional`` tracepoint may be missing: the probe runs without what it would add. A handler that runs
    ``everywhere`` follows tasks from CPU to CPU and is called on CPUs the user left out, too: it has to look
    at ``row->untraced`` itself. A handler that is not ``timed`` reads the clock itself if it needs to, which is
    the dearest part of a short program; its ``now`` may be 0.
    """

    name: str
    args: tuple[str, ...] = ()
    optional: bool = False
    everywhere: bool = False
    timed: bool = True

    @property
    def event(self) -> str:
        """The name without its system: ``sched_switch`` for ``sched:sched_switch``."""
        return self.name.partition(":")[2]


#: The softirqs, by vector: the enum of include/linux/interrupt.h, whose order has not changed since 2.6.
SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")

#: Interrupts of x86 that never pass through irq_handler_entry; source: arch/x86/include/asm/trace/irq_vectors.h.
VECTORS = (
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
    "x86_platform_ipi",
    "spurious_apic",
    "error_apic",
    "threshold_apic",
    "deferred_error_apic",
    "thermal_apic",
)


@dataclass(frozen=True)
class Vectors:
    """The x86 interrupt vectors' tracepoints, all ``irq_vectors:*_entry`` or all ``*_exit``, through one handler.

    ``edge`` is "entry" or "exit"; the handler is ``<probe>_on_vector_<edge>``. Absent on other architectures.
    """

    edge: Literal["entry", "exit"]
    optional: bool = True

    everywhere: bool = False

    @property
    def event(self) -> str:
        return f"vector_{self.edge}"

    @property
    def tracepoints(self) -> tuple[str, ...]:
        """The kernel's names, without the system."""
        return tuple(f"{vector}_{self.edge}" for vector in VECTORS)


@dataclass(frozen=True)
class Clock:
    """A software clock event on every traced CPU, ``hz`` times a second; handled by ``<probe>_on_clock``."""

    hz: int
    optional: bool = False
    everywhere: bool = False

    @property
    def event(self) -> str:
        return "clock"


Hook = Tracepoint | Vectors | Clock


@dataclass(frozen=True)
class Member:
    """A kernel struct member, read at the running kernel's BTF offset.

    ``Member("task_struct.on_rq")`` becomes ``-DTASK_STRUCT__ON_RQ=<bytes>``; a dotted path may go through
    embedded structs. ``otherwise`` are paths to the same thing in other kernels; the constant is named for
    ``path``. A missing ``optional`` member is left undefined: test it with ``#ifdef``. A ``bit`` is a bitfield of one:
    ``…__BIT`` is its number in the byte at the offset.
    """

    path: str
    otherwise: tuple[str, ...] = ()
    optional: bool = False
    bit: bool = False

    @property
    def macro(self) -> str:
        """The constant's name in C."""
        return self.path.upper().replace(".", "__")


@dataclass(frozen=True)
class Map:
    """A memory-mapped array of ``struct <layout>``, one row per element of ``axes``.

    ``axes`` multiply out to the number of rows: "cpu" stands for the possible CPUs, any other name for a
    constant of ``bpf/<probe>.h``. Maps without a table are listed too: the loader checks every layout.
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
    ``gauges`` are shown as they are, ``peaks`` likewise and set back to 0, so that each is of one interval.
    ``derive(before, after, start_ns, end_ns)`` replaces the generic difference where a table needs more than
    that: it gets two snapshots of the map and returns the rows and what it had to leave out. ``writes`` are members
    that a program makes odd before it changes a row and even again after it: a copy is of one moment.
    ``named(rows, names)`` puts names in place of ids that only the node can resolve, as ``Events.decode`` does.
    """

    name: str
    help: str
    map: str = ""
    by: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    gauges: tuple[str, ...] = ()
    peaks: tuple[str, ...] = ()
    histogram: str = ""
    used: str = ""
    writes: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    named: Callable[..., np.ndarray] | None = None
    derive: Callable[..., tuple[np.ndarray, Mapping[str, int]]] | None = None


@dataclass(frozen=True)
class Events:
    """Rare single events through the ring buffer; ``layout`` is their C struct, which starts with ``struct event``.

    ``decode(events, names)`` turns them (a structured array of the layout) into the table's rows;
    ``names`` answers what only the node knows: ``names.cgroup(id) -> bytes``, ``names.cgroup_of(pid) -> bytes``.
    ``rank`` is the member that says how bad an event is: of very many in one interval, only the worst are told.
    """

    name: str
    help: str
    layout: str
    rank: str = ""
    columns: tuple[Column, ...] = ()
    decode: Callable[..., np.ndarray] | None = None

    @property
    def macro(self) -> str:
        """The constant that holds this event's kind: ``RUNQUEUE_WORST_EVENT`` for ``struct runqueue_worst``."""
        return f"{self.layout.upper()}_EVENT"


@dataclass(frozen=True)
class Loss:
    """A counter of what a probe missed: ``reason`` as shown, summed over ``field`` of every row of ``map``.

    Without a map the probe's source, reader or ``derive`` counts it. Of a ``harmless`` one nothing is missing from
    the probe's numbers: what is not told one by one is counted, or there was nothing to tell.
    """

    reason: str
    map: str
    field: str
    help: str
    harmless: bool = False


@dataclass(frozen=True)
class Probe:
    """One probe: a name in ``bpf/<name>.h``, ``bpf/<name>.bpf.c``, ``tracer/probes/<name>.py`` and its test.

    A probe without kernel code has ``source`` instead of hooks: the module ``tracer.kernel.sources.<source>``
    is polled once per interval. A probe whose tables are no differences of mapped arrays names a ``reader``,
    the module ``tracer.kernel.readers.<reader>``.

    ``plain_maps`` are maps read through system calls (hashes, stacks): the loader hands over descriptors only.
    ``settings`` are integer constants of the C text with their defaults, ``enums`` kernel enumerators
    (``("cgroup_subsys_id", "cpu_cgrp_id")`` becomes ``CPU_CGRP_ID``; ``optional_enums`` may be missing), ``filters``
    those of "pid", "cgroup" that the probe can apply, ``requires`` those whose handlers have to run before this one's,
    ``aliases`` names of other tools that ask the same question, ``capabilities`` what its source or reader needs all
    along beyond ``privilege.KEPT`` ("syslog"). Cost and limits stand in the module's
    docstring, under ``Overhead:`` and ``Caveat:``.
    """

    name: str
    summary: str
    tier: Literal["light", "deep"]
    tables: tuple[Table | Events, ...]
    hooks: tuple[Hook, ...] = ()
    members: tuple[Member, ...] = ()
    enums: tuple[tuple[str, str], ...] = ()
    optional_enums: tuple[tuple[str, str], ...] = ()
    maps: tuple[Map, ...] = ()
    plain_maps: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    settings: Mapping[str, int] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    source: str = ""
    reader: str = ""
    aliases: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
