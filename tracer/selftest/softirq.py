"""softirq: runs per vector."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.probe import SOFTIRQS
from tracer.selftest import Check, Evidence
from tracer.selftest._evidence import Span, counted


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge each vector's runs in all scenes by /proc/softirqs; tell NET_RX, or whichever is wrong."""
    rows = evidence.all_rows("softirq", "run")
    found: dict[str, tuple[int, Span]] = {}
    for number, name in enumerate(SOFTIRQS):
        span = evidence.whole_span(lambda counts, name=name: counts.softirqs.get(name, 0))  # type: ignore[misc]
        found[name] = counted(rows[rows["vector"] == number]), span
    # The kernel counts at the beginning of a run, we at its end.
    lost = evidence.lost("softirq")
    slack = evidence.cpu_count + min(lost, sum(runs for runs, _ in found.values()) // 100)
    hidden = min(3 * evidence.hidden, 0.05)
    wrong = [name for name, (runs, span) in found.items() if not span.holds(runs, slack + int(hidden * span.most))]
    for name in wrong or ["NET_RX"]:
        runs, span = found[name]
        others = "" if wrong else f"; {sum(runs > 0 for runs, _ in found.values())} vectors agree"
        losses = f", {lost:,} told as lost" if lost else ""
        yield Check.of(not wrong, f"{name} ran {runs:,} times{losses}", f"{span} ± 0.1 % in /proc/softirqs{others}")
