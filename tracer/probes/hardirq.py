"""How often each hard interrupt runs and for how long, per CPU and interrupt line.

On a shared line only the handler that found something to do is charged; the calls of the others (IRQ_NONE) are
kept apart: interrupts that nobody handles show there. The timer, inter-processor and other vectors of x86 that
never pass through a line are rows of their own, named as in /proc/interrupts.

Overhead: about 35 ns per interrupt, 80 ns when it woke the CPU from idle, above what cpustate takes.
Caveat: NMIs, machine checks, the hypervisor's callback (HYP) and KVM's posted interrupts have no tracepoint;
TLB shoot-downs are inside CAL.
Caveat: threads of threaded interrupts are tasks: only the part that wakes them counts here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.layouts import constants
from tracer.probe import Column, Loss, Map, Member, Probe, Table, Tracepoint, Vectors

_FIRST_VECTOR = constants("hardirq")["HARDIRQ_FIRST_VECTOR"]

#: x86's system vectors by their names in /proc/interrupts; source: arch/x86/include/asm/irq_vectors.h and, for the
#: names, arch_show_interrupts in arch/x86/kernel/irq.c. The numbers of those traced have not changed since 2.6.30,
#: except the local timer's (0xef before v4.17).
VECTOR_NAMES = {
    0xFF: b"SPU",
    0xFE: b"ERR",
    0xFD: b"RES",
    0xFC: b"CAL",  # call_function, for many CPUs
    0xFB: b"CAL",  # call_function_single
    0xFA: b"TRM",
    0xF9: b"THR",
    0xF7: b"PLT",
    0xF6: b"IWI",
    0xF4: b"DFR",
    0xEC: b"LOC",
    0xEF: b"LOC",
}


def _named(rows: np.ndarray, names: Any) -> np.ndarray:
    """Name the vectors, which have no names in the kernel."""
    for number, name in VECTOR_NAMES.items():
        rows["name"][rows["irq"] == _FIRST_VECTOR + number] = name
    return rows


PROBE = Probe(
    name="hardirq",
    summary="how often each hard interrupt runs and for how long, per CPU and interrupt line",
    tier="light",
    requires=("cpustate",),
    aliases=("hardirqs",),
    hooks=(
        Tracepoint("irq:irq_handler_exit", ("int", "struct irqaction *", "int")),
        Vectors("exit"),
    ),
    members=(Member("irqaction.name"),),
    maps=(Map("hardirq_rows", "hardirq_row", ("cpu", "HARDIRQ_ROWS")),),
    tables=(
        Table(
            "run",
            help="run time of each handler's calls that found something to do",
            map="hardirq_rows",
            by=("cpu", ""),
            keys=("irq", "name"),
            counters=("none_count", "none_ns"),
            histogram="run",
            used="used_ns",
            named=_named,
            columns=(
                Column("irq", "", "interrupt line; x86 vectors are 1000000 + vector, handlers without a row are -1"),
                Column("name", "", "of the handler, as in /proc/interrupts"),
                Column("none_count", "calls", "calls that found nothing to do (IRQ_NONE), not counted as runs"),
                Column("none_ns", "ns", "time in those calls"),
                Column("run", "s", "run time of the other calls"),
            ),
        ),
    ),
    losses=(
        Loss(
            "folded",
            "hardirq_rows",
            "folded",
            "interrupts counted as 'other': more lines on a CPU than it has rows",
            harmless=True,
        ),
    ),
)
