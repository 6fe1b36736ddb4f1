"""What a node's last windows say, in a few words, when there will be no more of them. Any windows will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tracer import units
from tracer.analysis.waits import is_seen, main_part
from tracer.window import Window

__all__ = ["Facts", "facts_of"]

_INTERRUPTS = {"softirq_ns": "softirqs", "hardirq_ns": "hard interrupts"}
_SHARES = ("wait_ns", "covered_ns", "holder_ns", "idle_ns", *_INTERRUPTS)


@dataclass
class Facts:
    """``texts``: phrases, with names as they came. ``numbers``: the same for programs, with units in their names."""

    texts: list[str] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)


def facts_of(intervals: Sequence[Sequence[Window]]) -> Facts:
    """Return the busiest CPU and softirq, the worst wait and the longest open stall of the last intervals."""
    facts = Facts()
    windows = [window for interval in intervals for window in interval]
    _busiest(facts, _last(windows, "cpustate", "time"))
    _stalled(facts, _last(windows, "cpustall", "open"))
    _worst_wait(facts, [window for window in windows if (window.probe, window.table) == ("runqueue", "worst")])
    return facts


def _busiest(facts: Facts, window: Window | None) -> None:
    columns = _numbers(window, "cpu", "running_ns", "idle_ns", "softirq_ns", "hardirq_ns")
    if columns is None:
        return
    cpu, running, idle, softirq, hardirq = columns
    whole = np.maximum(running + idle + softirq + hardirq, 1.0)
    busy, soft = 1 - idle / whole, softirq / whole
    one, other = int(np.argmax(busy)), int(np.argmax(soft))
    facts.texts.append(
        f"busiest CPU {cpu[one]:.0f} at {units.percent(float(busy[one]))},"
        f" most softirq on CPU {cpu[other]:.0f}, {units.percent(float(soft[other]))}"
    )
    facts.numbers |= {"busiest_cpu": float(cpu[one]), "busiest_percent": 100 * float(busy[one])}
    facts.numbers |= {"softirq_cpu": float(cpu[other]), "softirq_percent": 100 * float(soft[other])}


def _stalled(facts: Facts, window: Window | None) -> None:
    columns = _numbers(window, "cpu", "age_ns")
    if columns is None:
        return
    cpu, age = columns
    worst = int(np.argmax(age))
    facts.texts.append(f"longest open on CPU {cpu[worst]:.0f} for {units.duration(float(age[worst]))}")
    facts.numbers |= {"open_cpu": float(cpu[worst]), "open_s": float(age[worst]) / 1e9}


def _worst_wait(facts: Facts, windows: Sequence[Window]) -> None:
    worst_ns, text = -1.0, ""
    for window in windows:
        columns = _numbers(window, "cpu", "wait_ns")
        if columns is None:
            continue
        cpu, wait = columns
        row = int(np.argmax(wait))
        if wait[row] > worst_ns:
            worst_ns = float(wait[row])
            who, behind = _name(window, "comm", row), _behind(window, row)
            text = f"worst wait {units.duration(worst_ns)}, {who or 'a task'}{behind} on CPU {cpu[row]:.0f}"
    if text:
        facts.texts.append(text)
        facts.numbers["worst_wait_ms"] = worst_ns / 1e6


def _behind(window: Window, row: int) -> str:
    """Return who had the CPU during a wait, as part of a sentence; "" where that is not known well enough."""
    event = {name: columns[0][row] for name in _SHARES if (columns := _numbers(window, name))}
    part, _ = main_part(event)
    if not is_seen(event) or not part:
        return ""
    holder = _name(window, "holder_comm", row) if part == "holder_ns" else _INTERRUPTS.get(part, "")
    return f" behind {holder}" if holder else ""


def _last(windows: Sequence[Window], probe: str, table: str) -> Window | None:
    found = [window for window in windows if (window.probe, window.table) == (probe, table)]
    return found[-1] if found else None


def _numbers(window: Window | None, *names: str) -> list[np.ndarray] | None:
    """Return columns as finite floats; None unless all are there, hold one number per row, and there is a row."""
    if window is None or not len(window.rows):
        return None
    columns = []
    for name in names:
        if name not in (window.rows.dtype.names or ()):
            return None
        column = window.rows[name]
        if column.ndim != 1 or column.dtype.kind not in "uif":
            return None
        columns.append(np.nan_to_num(column.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0))
    return columns


def _name(window: Window, column: str, row: int) -> str:
    if column not in (window.rows.dtype.names or ()):
        return ""
    name = window.rows[column][row]
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else ""
