"""Network adapters that do not send, and those whose firmware does not answer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.alerts import culprits, precursors
from tracer.alerts import thresholds as limits
from tracer.alerts.alert import Condition, Culprit, Severity, Subject
from tracer.alerts.logpatterns import LINES, Found, conditions, found
from tracer.alerts.rule import Rule, View
from tracer.units import duration

__all__ = ["RULES"]


def _timeout(view: View) -> Iterator[Condition]:
    rows, lines = precursors.told(view, "tx_timeout"), found(view, "tx-timeout")
    if not len(rows) and not lines:
        return
    earlier = precursors.lately(view, "tx_timeout", limits.TX_TIMEOUTS_SPAN_NS)
    devices = dict.fromkeys([*(precursors.name(row) for row in rows), *(line.subject.name for line in lines)])
    for device in devices:
        of_device = [row for row in rows if precursors.name(row) == device]
        times = sum(precursors.name(row) == device for row in earlier)
        yield _of_device(device, of_device, [line for line in lines if line.subject.name == device], times)


def _of_device(device: str, rows: list[np.void], lines: list[Found], times: int) -> Condition:
    """Return the condition of one device: what the tracepoint says, and what the driver logs about it."""
    said = next(iter(conditions(lines)), None)
    severity = max(said.severity if said else Severity.WARNING, Severity.WARNING)
    driver = culprits.text(rows[0]["text"]) if rows else ""
    if rows:
        queues = ", ".join(str(queue) for queue in sorted({int(row["number"]) for row in rows}))
        summary = f"{device}: transmit queue {queues} has timed out{f' (driver {driver})' if driver else ''}"
        logged = [line.says for line in lines if "has timed out" not in line.says]
        summary += f" (also: {logged[0]})" if logged else ""
    else:
        summary = said.summary if said else device
    if times >= limits.TX_TIMEOUTS_PAGE:
        severity = Severity.PAGE
        summary += f"; {times} times in {duration(limits.TX_TIMEOUTS_SPAN_NS)}: a lockup may follow, drain the node"
    since_ns = min([*(int(row["time_ns"]) for row in rows), *(line.time_ns for line in lines)])
    culprit = Culprit(context="transmit watchdog", module=driver) if driver else None
    numbers = {"timeouts": max(times, len(rows)), "lines": sum(line.count for line in lines)}
    return Condition(Subject("device", device), severity, summary, since_ns, numbers, culprit)


def _firmware(view: View) -> Iterator[Condition]:
    return conditions(found(view, "nic-firmware"))


RULES = (
    Rule(
        name="tx-timeout",
        title="network adapter does not send",
        help=f"""
A transmit queue has been stopped for longer than its driver allows (5 s mostly, mlx5 15 s): the kernel's transmit
watchdog has told the driver, which resets the queue or the adapter. What the driver logs about it belongs to the same
alert. Often the adapter is the victim: its CPU was held up, and nobody took its interrupts.

Severity: warning; page from {limits.TX_TIMEOUTS_PAGE} times in {duration(limits.TX_TIMEOUTS_SPAN_NS)}, or when the
adapter does not come back.

Countdown: none.
""",
        next="look what held the queue's CPU (alert soft-lockup or softirq-unserved); else reset the card",
        judge=_timeout,
        needs=(),
        wants=(precursors.TOLD, LINES),
        history=(precursors.TOLD,),
        fast=True,
        keep_ns=limits.RECENT_NS,
    ),
    Rule(
        name="nic-firmware",
        title="network adapter's firmware fails",
        help="""
The firmware of a network adapter does not answer, has reset itself, or says that it is ill (mlx5, bnxt, ena, ice).

Severity: page; warning where it is only too hot.

Countdown: none.
""",
        next="drain the node; a power cycle brings most of them back, have the card replaced if it comes again",
        judge=_firmware,
        needs=(LINES,),
        keep_ns=limits.RECENT_NS,
    ),
)
