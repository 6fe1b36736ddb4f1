"""What measured time is told by: interrupts by what ran, waits for a CPU by what had it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from tracer import brackets
from tracer.analysis.names import is_irq_vector, vector
from tracer.analysis.rows import has, numbers, texts
from tracer.reports.html.times import Path
from tracer.window import Window

__all__ = ["interrupts", "waits"]

_SOFTIRQS, _HARDIRQS = ("softirqs", "k"), ("interrupts", "k")
_NOTHING_TO_DO = (brackets.NOTHING_TO_DO, "m")
#: What else than the holder has a CPU, by the column that says for how long.
_HELD: Mapping[str, tuple[str, str]] = {
    "others": (brackets.OTHER_TASKS, "m"),
    "softirq": _SOFTIRQS,
    "hardirq": _HARDIRQS,
    "idle": (brackets.IDLE, "m"),
}
_NOT_KNOWN = (brackets.NOT_KNOWN, "m")
_LONGEST = np.uint64(1 << 60)


def interrupts(window: Window) -> Iterator[tuple[Sequence[Path], np.ndarray, np.ndarray]]:
    """Tell how long softirqs (of ``softirq.run``) and interrupt handlers (of ``hardirq.run``) ran."""
    rows = window.rows
    cpus = numbers(rows, "cpu")
    if window.probe == "softirq":
        yield _vectors(tuple(rows["vector"].tolist())), rows["sum"], cpus
        return
    lines, found_nothing = _lines(tuple(rows["irq"].tolist()), tuple(texts(rows, "name")))
    yield lines, rows["sum"], cpus
    yield found_nothing, numbers(rows, "none_ns"), cpus


# Every interval has the same rows.
@lru_cache(maxsize=4)
def _vectors(vectors: tuple[int, ...]) -> Sequence[Path]:
    return [(_SOFTIRQS, (vector(number), "k")) for number in vectors]


@lru_cache(maxsize=4)
def _lines(irqs: tuple[int, ...], names: tuple[str, ...]) -> tuple[Sequence[Path], Sequence[Path]]:
    lines = [_line(irq, name) for irq, name in zip(irqs, names, strict=True)]
    return [(_HARDIRQS, line) for line in lines], [(_HARDIRQS, line, _NOTHING_TO_DO) for line in lines]


def _line(irq: int, name: str) -> tuple[str, str]:
    return (name or f"vector {irq}", "k") if is_irq_vector(irq) else (f"{name or '?'} (line {irq})", "d")


def waits(window: Window) -> Iterator[tuple[Sequence[Path], np.ndarray, np.ndarray]]:
    """Tell what had the CPU during the longest waits (``runqueue.worst``), and inside of that, who waited."""
    rows = window.rows
    cpus = numbers(rows, "waited_cpu" if has(rows, "waited_cpu") else "cpu")
    spent = {name: numbers(rows, f"{name}_ns").astype(np.int64) for name in ("holder", "task", *_HELD)}
    spent["others"] = spent["task"] - spent["holder"]
    waiting = [(comm or "?", "w") for comm in texts(rows, "comm")]
    holders = [(comm or "?", "t") for comm in texts(rows, "holder_comm")]
    # What someone else recorded may add up to more than the wait.
    left = np.minimum(rows["wait_ns"], _LONGEST).astype(np.int64)
    for name in ("holder", *_HELD):
        ns = np.clip(spent[name], 0, left)
        left = left - ns
        yield [*zip(holders if name == "holder" else [_HELD[name]] * len(rows), waiting, strict=True)], ns, cpus
    yield [(_NOT_KNOWN, one) for one in waiting], left, cpus
