"""hardirq: interrupts per line and vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracer.layouts import constants
from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import Span, counted

_FIRST_VECTOR = constants("hardirq")["HARDIRQ_FIRST_VECTOR"]


@dataclass(frozen=True)
class _Row:
    name: str
    count: int
    span: Span


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge every line and vector that moved in all scenes by /proc/interrupts; tell the busiest, or what is wrong."""
    rows = evidence.all_rows("hardirq", "run")
    found = [*_vectors(evidence, rows), *_lines(evidence, rows)]
    # The kernel counts before the handler runs, we after. What found no row of its own is told as such.
    slack = evidence.cpu_count + min(evidence.lost("hardirq"), sum(row.count for row in found) // 100)
    slack += sum(scene.windows[("hardirq", "run")].losses.get("folded", 0) for scene in evidence.scenes.values())
    wrong = [row for row in found if not row.span.holds(row.count, slack + _hidden(evidence, row))]
    moved = [row for row in found if row.count]
    if not moved:
        yield Check.of(False, "no interrupt at all", "at least the timer's")
        return
    for row in wrong or [max(moved, key=lambda row: row.count)]:
        others = "" if wrong else f"; {len(moved)} lines and vectors agree"
        yield Check.of(not wrong, f"{row.name} {row.count:,} times", f"{row.span} ± 0.1 % in /proc/interrupts{others}")


def _hidden(evidence: Evidence, row: _Row) -> int:
    """Return how many of a row's interrupts the kernel may have shown to no program.

    It hides all events of a CPU for some milliseconds, whether there were many or few of this kind.
    """
    return int(min(3 * evidence.hidden, 0.05) * row.span.most)


def _vectors(evidence: Evidence, rows: np.ndarray) -> Iterator[_Row]:
    for name in sorted(set(rows["name"][rows["irq"] >= _FIRST_VECTOR].tolist())):
        text = bytes(name).decode()
        span = evidence.whole_span(lambda counts, text=text: counts.interrupts.get(text, 0))  # type: ignore[misc]
        if text == "CAL":
            # TLB shoot-downs come as function calls; kernels differ on whether CAL leaves them out.
            span = Span(span.least, span.most + evidence.whole_span(lambda counts: counts.interrupts["TLB"]).most)
        yield _Row(text, counted(rows[rows["name"] == name]), span)


def _lines(evidence: Evidence, rows: np.ndarray) -> Iterator[_Row]:
    _, last = list(evidence.scenes.values())[-1].after
    for line, handlers in last.handlers.items():
        # A shared line runs all of its handlers for one interrupt.
        if handlers == 1:
            ours = rows[rows["irq"] == int(line)]
            span = evidence.whole_span(lambda counts, line=line: counts.interrupts.get(line, 0))  # type: ignore[misc]
            # An edge that comes while its handler runs elsewhere has it run once more, uncounted: handle_edge_irq().
            span = Span(span.least, span.most + span.most // 20)
            yield _Row(f"line {line}", counted(ours) + int(ours["none_count"].sum()), span)
