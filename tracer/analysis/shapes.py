"""How each table merges over time. docs/architecture.md lists the columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tracer.analysis.merged import Shape

__all__ = ["EVENTS", "SAMPLES", "SHAPES", "STACKS", "UNKNOWN", "TableName"]

TableName = tuple[str, str]

_LINK_COUNTERS = (
    *("rx_bytes", "rx_packets", "rx_dropped", "rx_errors", "rx_missed", "rx_fifo", "rx_over", "rx_nohandler"),
    *("tx_bytes", "tx_packets", "tx_dropped", "tx_errors", "tx_carrier", "carrier_changes"),
)
_PORT_COUNTERS = (
    *("rx_bytes", "rx_packets", "rx_dropped", "rx_errors", "out_of_buffer", "out_of_sequence", "packet_seq_err"),
    *("tx_bytes", "tx_packets", "tx_discards", "tx_wait", "local_ack_timeout_err", "rnr_nak_retry_err"),
    *("symbol_errors", "link_recovered", "link_downed", "integrity_errors", "retries_exceeded"),
)

_THREAD_TIMES = (
    *("wall_ns", "running_ns", "waiting_ns", "throttled_ns", "reclaim_ns", "compaction_ns", "unknown_ns"),
    *("stall_asleep_ns", "wait_softirq_ns", "wait_hardirq_ns", "softirq_ns", "hardirq_ns", "waits"),
    *("sleep_ns", "disk_ns", "mutex_ns", "rwsem_ns", "rtlock_ns", "uninterruptible_ns", "stopped_ns"),
    *("futex_ns", "socket_ns", "pipe_ns", "poll_ns", "timer_ns", "child_ns", "file_ns", "device_ns"),
    *("hot_ns", "slow_ns"),
)

SHAPES: Final[Mapping[TableName, Shape]] = {
    ("runqueue", "wait"): Shape(keys=("cpu",)),
    ("runqueue_cgroup", "wait"): Shape(keys=("cgroup",), sums=("preempted",)),
    ("softirq", "delay"): Shape(keys=("cpu", "vector")),
    ("softirq", "run"): Shape(keys=("cpu", "vector")),
    ("hardirq", "run"): Shape(keys=("cpu", "irq", "name"), sums=("none_count", "none_ns")),
    ("napi", "poll"): Shape(keys=("cpu", "device", "napi_id", "budget"), sums=("polls", "work", "full")),
    ("cpustate", "time"): Shape(keys=("cpu",), sums=("running_ns", "idle_ns", "softirq_ns", "hardirq_ns")),
    ("cpustate", "check"): Shape(keys=(), gauges=("made", "seen")),
    ("ledger", "time"): Shape(keys=("pid",), sums=_THREAD_TIMES, gauges=("comm", "cgroup", "threads", "open_wait_ns")),
    ("ledger", "taken"): Shape(keys=("pid", "kind", "number", "name", "cgroup"), sums=("ns",)),
    ("cpustall", "stall"): Shape(keys=("cpu",)),
    ("cpustall", "feed"): Shape(keys=("cpu",)),
    ("netdev", "link"): Shape(
        keys=("device",), sums=_LINK_COUNTERS, gauges=("driver", "state", "carrier", "speed_mbps", "rx_queues")
    ),
    ("netdev", "rdma"): Shape(
        keys=("device", "port"), sums=_PORT_COUNTERS, gauges=("netdev", "link_layer", "state", "rate_mbps")
    ),
    ("agent", "cost"): Shape(
        keys=("program",),
        sums=("run_count", "run_ns", "sampled_ns", "recursion_misses", "cpu_ns"),
        gauges=("resident_bytes", "map_bytes"),
    ),
}

# Tables of single events: the column that says how bad one is, and those that tell a stall which is told again from
# another one.
EVENTS: Final[Mapping[TableName, tuple[str, tuple[str, ...]]]] = {
    ("runqueue", "worst"): ("wait_ns", ()),
    ("softirq", "worst"): ("duration_ns", ()),
    ("cpustall", "stalls"): ("duration_ns", ("cpu", "since_ns")),
    ("cpustall", "open"): ("age_ns", ("cpu", "kind", "pid")),
}

# Tables of samples: their weight per task and stack is summed; what the stacks are is told in tables of their own.
SAMPLES: Final = frozenset({("oncpu", "samples"), ("offcpu", "samples")})
STACKS: Final = frozenset((probe, table) for probe, _ in SAMPLES for table in ("stacks", "frames"))

# A table of a probe that is newer than this code: one series per CPU when it holds a histogram.
UNKNOWN: Final = Shape(keys=("cpu",))
