"""Synthetic nodes with a known answer: realistic windows for the tests of analysis and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.histogram import SLOTS, slot_of
from tracer.window import Window

HISTOGRAM = [("sum", "u8"), ("slots", "u4", (SLOTS,))]
SECOND = 1_000_000_000
MS = 1_000_000
START = 1000 * SECOND
OFFSET = 1_764_468_665 * SECOND  # wall clock minus monotonic
HEADER: dict[str, Any] = {
    "host": "gpu-0417",
    "kernel": "6.18.44",
    "boot_id": "0a1b2c3d-0000-4000-8000-000000000000",
    "cpus": 8,
    "interval_ns": SECOND,
    "clock_offset_ns": OFFSET,
}
WORST_WAIT = np.dtype(
    [
        ("time_ns", "u8"),
        ("wait_ns", "u8"),
        ("cpu", "u4"),
        ("waited_cpu", "u4"),
        ("pid", "u4"),
        ("tgid", "u4"),
        ("comm", "S16"),
        ("cgroup", "S96"),
        ("holder_pid", "u4"),
        ("holder_tgid", "u4"),
        ("holder_comm", "S16"),
        ("holder_cgroup", "S96"),
        ("holder_ns", "u8"),
        ("holders", "u4"),
        ("task_ns", "u8"),
        ("idle_ns", "u8"),
        ("softirq_ns", "u8"),
        ("hardirq_ns", "u8"),
        ("covered_ns", "u8"),
    ]
)
WORST_SOFTIRQ = np.dtype(
    [
        ("time_ns", "u8"),
        ("kind", "u4"),
        ("duration_ns", "u8"),
        ("cpu", "u4"),
        ("vector", "u4"),
        ("pid", "u4"),
        ("comm", "S16"),
        ("cgroup", "S96"),
        ("holder_ns", "u8"),
        ("softirq_ns", "u8"),
        ("hardirq_ns", "u8"),
    ]
)
STALL = np.dtype(
    [("time_ns", "u8"), ("since_ns", "u8"), ("duration_ns", "u8"), ("cpu", "u4"), ("context", "S32")]
    + [("evidence", "u4"), ("pid", "u4"), ("comm", "S16")]
)
OPEN = np.dtype([("cpu", "u4"), ("kind", "S12"), ("age_ns", "u8"), ("pid", "u4"), ("comm", "S16"), ("vector", "u4")])
LINK = np.dtype(
    [("ifindex", "u4"), ("device", "S16"), ("driver", "S32"), ("state", "S16"), ("carrier", "u1"), ("speed_mbps", "u4")]
    + [(name, "u8") for name in ("carrier_changes", "rx_bytes", "rx_packets", "rx_dropped", "rx_errors", "rx_missed")]
    + [(name, "u8") for name in ("tx_bytes", "tx_packets", "tx_dropped", "tx_errors")]
)
NET_TX, NET_RX, TIMER, RCU = 2, 3, 1, 9


def histogram(keys: Sequence[tuple[str, str]], values: dict[tuple[Any, ...], Any], **extra: Any) -> np.ndarray:
    """Return rows of ``keys`` with the histogram of each key's values in ns."""
    rows = np.zeros(len(values), np.dtype([*keys, *HISTOGRAM, *((name, "u8") for name in extra)]))
    for row, (key, ns) in zip(rows, values.items(), strict=True):
        for (name, _), part in zip(keys, key, strict=True):
            row[name] = part
        ns = np.asarray(ns, dtype=np.uint64)
        row["sum"] = ns.sum()
        row["slots"] = np.bincount(slot_of(ns), minlength=SLOTS)
    for name, column in extra.items():
        rows[name] = column
    return rows


def events(dtype: np.dtype, *rows: dict[str, Any]) -> np.ndarray:
    """Return event rows; a column that is not given is 0 or empty."""
    table = np.zeros(len(rows), dtype)
    for row, values in zip(table, rows, strict=True):
        for name, value in values.items():
            row[name] = value
    return table


def lognormal(random: np.random.Generator, median_ns: float, spread: float, size: int) -> np.ndarray:
    """Return latencies as they are: many short, few long."""
    return (median_ns * np.exp(random.normal(0, spread, size))).astype(np.uint64)


class Node:
    """A healthy node, interval by interval; arguments of ``interval`` make it ill."""

    def __init__(self, cpus: int = 8, seed: int = 1, seconds: float = 1.0) -> None:
        self.cpus = cpus
        self.random = np.random.default_rng(seed)
        self.now = START
        self.length = int(seconds * SECOND)

    def interval(
        self,
        *,
        waits: dict[int, Sequence[int]] | None = None,
        worst: Sequence[dict[str, Any]] = (),
        late: dict[tuple[int, int], Sequence[int]] | None = None,
        late_events: Sequence[dict[str, Any]] = (),
        still: Sequence[dict[str, Any]] = (),
        busy: dict[int, tuple[float, float, float]] | None = None,
        links: dict[bytes, dict[str, int]] | None = None,
        stalls: Sequence[dict[str, Any]] = (),
        losses: dict[str, int] | None = None,
        length: int = 0,
        quiet: bool = False,
        only: Sequence[str] = (),
    ) -> list[Window]:
        """Return one interval's windows; ``waits`` and ``late`` add values, ``busy`` is (task, softirq, hardirq)."""
        length = length or self.length
        start, self.now = self.now, self.now + length
        tables = {
            "runqueue.wait": self._waits(waits or {}, 10 if quiet else 1500),
            "runqueue.worst": events(WORST_WAIT, *({"time_ns": start + 5 * MS, **row} for row in worst)),
            "softirq.delay": self._softirqs(12e3, late or {}, 10 if quiet else 300),
            "softirq.run": self._softirqs(4e3, {}, 10 if quiet else 300),
            "softirq.worst": events(WORST_SOFTIRQ, *({"time_ns": start + 7 * MS, **row} for row in late_events)),
            "hardirq.run": self._lines(quiet),
            "napi.poll": self._polls(),
            "cpustate.time": self._cpus(busy or {}, length),
            "cpustall.feed": histogram([("cpu", "u4")], {(cpu,): [20_000] for cpu in range(self.cpus)}),
            "cpustall.stalls": events(STALL, *({"time_ns": start, **row} for row in stalls)),
            "cpustall.open": events(OPEN, *still),
            "netdev.link": self._links(links or {}),
            "agent.cost": self._cost(),
        }
        windows = []
        for name, rows in tables.items():
            probe, _, table = name.partition(".")
            if not only or probe in only:
                windows.append(Window(probe, table, start, self.now, rows, _losses(name, losses)))
        return windows

    def _waits(self, extra: dict[int, Sequence[int]], size: int) -> np.ndarray:
        values = {
            (cpu,): np.concatenate([lognormal(self.random, 9e3, 1.0, size), np.array(extra.get(cpu, ()), np.uint64)])
            for cpu in range(self.cpus)
        }
        return histogram([("cpu", "u4")], values)

    def _softirqs(self, median: float, extra: dict[tuple[int, int], Sequence[int]], size: int) -> np.ndarray:
        values = {
            (cpu, vector): np.concatenate(
                [lognormal(self.random, median, 0.8, size), np.array(extra.get((cpu, vector), ()), np.uint64)]
            )
            for cpu in range(self.cpus)
            for vector in (TIMER, NET_TX, NET_RX, RCU)
        }
        return histogram([("cpu", "u4"), ("vector", "u4")], values)

    def _lines(self, quiet: bool) -> np.ndarray:
        size = 5 if quiet else 250
        values: dict[tuple[Any, ...], Any] = {}
        for cpu in range(self.cpus):
            values[cpu, 1_000_236, b"local_timer"] = lognormal(self.random, 1.5e3, 0.4, size)
            values[cpu, 40 + cpu, f"mlx5_comp{cpu}".encode()] = lognormal(self.random, 2e3, 0.4, 4 * size)
        keys = [("cpu", "u4"), ("irq", "u4"), ("name", "S32")]
        return histogram(keys, values, none_count=0, none_ns=0)

    def _polls(self) -> np.ndarray:
        keys = [("cpu", "u4"), ("device", "S16"), ("napi_id", "u4"), ("budget", "u4")]
        values = {(cpu, b"eth0", 8193 + cpu, 64): lognormal(self.random, 9e4, 0.6, 4) for cpu in range(self.cpus)}
        return histogram(keys, values, polls=1000, work=9400, full=4, streak_max=1)

    def _cpus(self, busy: dict[int, tuple[float, float, float]], length: int) -> np.ndarray:
        names = ("running_ns", "softirq_ns", "hardirq_ns")
        rows = np.zeros(self.cpus, [("cpu", "u4"), *((name, "u8") for name in (*names, "idle_ns"))])
        for cpu, row in enumerate(rows):
            shares = busy.get(cpu, (0.35 + 0.02 * (cpu % 4), 0.02, 0.01))
            row["cpu"] = cpu
            for name, share in zip(names, shares, strict=True):
                row[name] = int(length * share)
            row["idle_ns"] = max(0, length - sum(int(row[name]) for name in names))
        return rows

    def _links(self, more: dict[bytes, dict[str, int]]) -> np.ndarray:
        eth0 = {"rx_bytes": 940_000_000, "rx_packets": 650_000, "tx_bytes": 910_000_000, "tx_packets": 610_000}
        devices = {b"eth0": eth0, b"lo": {"rx_bytes": 12_000, "tx_bytes": 12_000, "rx_packets": 90, "tx_packets": 90}}
        for name, values in more.items():
            devices[name] = {**devices.get(name, {}), **values}
        rows = [
            {"device": name, "driver": b"mlx5_core", "state": b"up", "carrier": 1, "speed_mbps": 100_000, **values}
            for name, values in devices.items()
        ]
        return events(LINK, *rows)

    def _cost(self) -> np.ndarray:
        dtype = [("program", "S32"), *((name, "u8") for name in ("run_count", "run_ns", "recursion_misses"))]
        dtype += [("cpu_ns", "u8"), ("resident_bytes", "u8")]
        rows = np.zeros(3, dtype)
        rows[0] = (b"runqueue_on_sched_switch", 60_000, 5_400_000, 0, 0, 0)
        rows[1] = (b"softirq_on_softirq_entry", 10_000, 600_000, 0, 0, 0)
        rows[2] = (b"agent", 0, 0, 0, 3 * MS, 34_700_000)
        return rows


def hog_interval(node: Node) -> list[Window]:
    """CPU 1 is held by ``hog[1234]``; two victims of another cgroup wait 949 ms and 640 ms."""
    wait = {
        "waited_cpu": 1,
        "cpu": 1,
        "pid": 4411,
        "tgid": 4411,
        "comm": b"python3",
        "cgroup": b"/kubepods/train-7b",
        "holder_pid": 1234,
        "holder_tgid": 1234,
        "holder_comm": b"hog",
        "holder_cgroup": b"/system.slice/backup.service",
        "holders": 2,
    }
    return node.interval(
        waits={1: [949 * MS, 640 * MS, *[30 * MS] * 40]},
        worst=[wait | filled(949 * MS, 0.94), wait | filled(640 * MS, 0.92) | {"comm": b"nccl-proxy", "pid": 4420}],
        late={(1, NET_RX): [31 * MS] * 3},
        late_events=[
            {"kind": 1, "duration_ns": 31 * MS, "cpu": 1, "vector": NET_RX, "pid": 1234, "comm": b"hog"}
            | {"cgroup": b"/system.slice/backup.service", "holder_ns": 30 * MS, "softirq_ns": 0, "hardirq_ns": 20_000}
        ],
        busy={1: (0.97, 0.02, 0.01)},
    )


def crowd_interval(node: Node) -> list[Window]:
    """CPU 2 is shared by twelve tasks that take turns."""
    rows = [
        {"cpu": 2, "waited_cpu": 2, "pid": 700 + n, "tgid": 700 + n, "comm": b"worker", "cgroup": b"/job"}
        | {"holder_pid": 800 + n, "holder_comm": f"w{n}".encode(), "holder_cgroup": b"/job", "holders": 12}
        | filled(80 * MS, 0.11, task=0.99)
        for n in range(12)
    ]
    return node.interval(waits={2: [80 * MS] * 60}, worst=rows)


def filled(wait: int, holder: float, *, task: float = 0.0, soft: float = 0.0, idle: float = 0.0) -> dict[str, int]:
    """Return the columns that say how a wait of ``wait`` ns was filled."""
    shares = {"holder_ns": holder, "task_ns": max(task, holder), "softirq_ns": soft, "idle_ns": idle}
    return {"wait_ns": wait, "covered_ns": wait, **{name: int(wait * share) for name, share in shares.items()}}


def _losses(name: str, losses: dict[str, int] | None) -> dict[str, int]:
    if name == "runqueue.wait":
        return {"unmatched": 0, "collided": 0, **(losses or {})}
    return {"unraised": 0} if name == "softirq.delay" else {}
