"""What nodes are compared by: the one list of metrics, where each comes from and what it would mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from tracer.analysis.names import quoted, vector
from tracer.analysis.rows import text

__all__ = ["METRICS", "Cause", "Kind", "Metric", "Role", "Series", "normalised"]

Kind = Literal["histogram", "share", "rate"]
Cause = Literal[
    "scheduler", "quota", "softirq", "interrupts", "NIC", "memory", "storage", "thermal/frequency", "none seen"
]
#: What a deviation says of its node. ``culprit``: time is lost here. ``symptom``: packets suffer from something, which
#: may be another metric's cause. ``victim``: the node waits for others.
Role = Literal["culprit", "symptom", "victim"]


@dataclass(frozen=True)
class Metric:
    """One thing that is measured on every node; higher is worse.

    ``by`` names the column that makes several series of it. Of a histogram, ``slots`` are compared; of a share,
    ``above`` over ``below`` (columns that are summed; none: the wall clock in ns); of a rate, ``above`` per second.
    ``least`` is the amount that is too small to matter: added to both sides of a ratio. Rows ``of_ranks`` are those of
    processes that belong to a job.
    """

    name: str
    title: str
    table: tuple[str, str]
    kind: Kind
    cause: Cause
    role: Role = "culprit"
    by: str = ""
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    least: float = 0.0
    of_ranks: bool = False


class Series(NamedTuple):
    """A metric, and which part of it: a vector, a kind of interrupt line; "" when there is only one."""

    metric: str
    part: str = ""

    @property
    def title(self) -> str:
        """How it is called in a sentence: ``NET_RX softirq delay``."""
        title = METRICS[self.metric].title
        return f"{quoted(self.part)} {title}" if self.part else title

    @property
    def cause(self) -> Cause:
        """What it would mean if it were the cause."""
        # The block layer completes requests in a vector of its own.
        return "storage" if self.part in _STORAGE else METRICS[self.metric].cause


_STORAGE: Final = ("BLOCK", "IRQ_POLL")
_CPU, _LEDGER = ("cpustate", "time"), ("ledger", "time")
_CPU_TIME = ("running_ns", "idle_ns", "softirq_ns", "hardirq_ns")
_LINK_LOSSES = ("rx_dropped", "rx_errors", "rx_missed", "rx_fifo", "rx_over", "tx_dropped", "tx_errors", "tx_carrier")
_PORT_LOSSES = (
    *("rx_errors", "rx_dropped", "out_of_buffer", "out_of_sequence", "packet_seq_err", "local_ack_timeout_err"),
    *("rnr_nak_retry_err", "symbol_errors", "link_recovered", "retransmits", "tx_discards"),
)


def _share(
    name: str,
    title: str,
    table: tuple[str, str],
    cause: Cause,
    above: str,
    below: tuple[str, ...],
    least: float,
    role: Role = "culprit",
) -> Metric:
    return Metric(name, title, table, "share", cause, role, "", (above,), below, least)


def _of_ranks(name: str, title: str, cause: Cause, *above: str) -> Metric:
    """Time that a job's processes lost or slept, as a share of the time that they were there."""
    below = ("wall_ns",)
    return Metric(
        f"ranks.{name}",
        f"ranks' time {title}",
        _LEDGER,
        "share",
        cause,
        "culprit",
        "",
        above,
        below,
        0.02,
        of_ranks=True,
    )


_DECLARED = (
    Metric("runqueue.wait", "run-queue wait", ("runqueue", "wait"), "histogram", "scheduler"),
    Metric("softirq.delay", "softirq delay", ("softirq", "delay"), "histogram", "softirq", by="vector"),
    Metric("softirq.run", "softirq run time", ("softirq", "run"), "histogram", "softirq", by="vector"),
    Metric("hardirq.run", "interrupt run time", ("hardirq", "run"), "histogram", "interrupts", by="name"),
    Metric("workqueue.delay", "kernel work delay", ("workqueue", "delay"), "histogram", "scheduler"),
    Metric("napi.gap", "gap after full polls", ("napi", "poll"), "histogram", "NIC", "symptom"),
    _share("napi.full", "share of full polls", ("napi", "poll"), "NIC", "full", ("polls",), 0.05, "symptom"),
    _share("cpustate.softirq", "softirq time", _CPU, "softirq", "softirq_ns", _CPU_TIME, 0.01),
    _share("cpustate.hardirq", "hard interrupt time", _CPU, "interrupts", "hardirq_ns", _CPU_TIME, 0.01),
    _share("cpustate.idle", "idle time", _CPU, "none seen", "idle_ns", _CPU_TIME, 0.10, "victim"),
    _of_ranks("waiting", "waiting for a CPU", "scheduler", "waiting_ns"),
    _of_ranks("throttled", "held back by a quota", "quota", "throttled_ns"),
    _of_ranks("softirq", "taken by softirqs", "softirq", "softirq_ns", "wait_softirq_ns"),
    _of_ranks("hardirq", "taken by interrupts", "interrupts", "hardirq_ns", "wait_hardirq_ns"),
    _of_ranks("memory", "in memory stalls", "memory", "reclaim_ns", "compaction_ns"),
    _of_ranks("storage", "waiting for files and disks", "storage", "disk_ns", "file_ns"),
    _share("memory.stall", "time in memory stalls", ("memory", "effort"), "memory", "some_ns", (), 0.005),
    Metric("netdev.lost", "packets lost", ("netdev", "link"), "rate", "NIC", "symptom", "", _LINK_LOSSES, least=1.0),
    Metric("rdma.lost", "RDMA errors", ("netdev", "rdma"), "rate", "NIC", "symptom", "", _PORT_LOSSES, least=1.0),
)
METRICS: Final[Mapping[str, Metric]] = {metric.name: metric for metric in _DECLARED}


def normalised(column: str, value: Any) -> str:
    """Return the part that a key belongs to on any node: vectors by name, lines without their numbers."""
    if column == "vector":
        return vector(int(value))
    # eth0-TxRx-3 of one node is eth0-TxRx-17 of another.
    return re.sub(r"\d+", "*", text(value)) or "other"
