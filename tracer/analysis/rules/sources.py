"""What gives a CPU its softirqs: the devices it polls, the interrupt lines it takes."""

from __future__ import annotations

from tracer.analysis.merged import Group
from tracer.analysis.names import VECTORS, is_irq_vector, quoted
from tracer.analysis.rows import text
from tracer.analysis.rules.hardirq import calls_of, line_name
from tracer.analysis.summary import Summary
from tracer.units import percent

__all__ = ["source_of"]

_NETWORK = (VECTORS.index("NET_RX"), VECTORS.index("NET_TX"))
_BLOCK = VECTORS.index("BLOCK")
_NAMED = 3


def source_of(summary: Summary, number: int, cpu: int) -> str:
    """Return a sentence on where the softirqs of a vector came from on ``cpu``; empty when that is not known."""
    if number in _NETWORK:
        return _polled(summary, cpu)
    return _lines(summary, cpu) if number == _BLOCK else ""


def _polled(summary: Summary, cpu: int) -> str:
    table = summary.table("napi", "poll")
    polls: dict[str, int] = {}
    for (device, napi), group in table.groups("device", "napi_id", cpu=cpu).items() if table else ():
        name = f"{quoted(text(device))} (NAPI {napi})" if napi else quoted(text(device))
        polls[name] = polls.get(name, 0) + group.sums["polls"]
    shown = _largest(polls)
    return f"Polled on CPU {cpu}: {shown}." if shown else ""


def _lines(summary: Summary, cpu: int) -> str:
    table = summary.table("hardirq", "run")
    groups: dict[tuple[int, bytes], Group] = table.groups("irq", "name", cpu=cpu) if table else {}
    shown = _largest(
        {
            line_name(int(irq), text(name)): calls_of(group)[0]
            for (irq, name), group in groups.items()
            if not is_irq_vector(int(irq))
        }
    )
    return f"Device interrupts on CPU {cpu}: {shown}." if shown else ""


def _largest(counts: dict[str, int]) -> str:
    """Return the largest few with their shares of all: ``eth0 94 %, backlog 6 %``."""
    total = sum(counts.values())
    ranked = sorted(counts, key=lambda name: -counts[name])[:_NAMED]
    return ", ".join(f"{name} {percent(counts[name] / total)}" for name in ranked if counts[name])
