"""Softirqs, queues and interrupt lines in trouble; a busy node's are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.alert_views import SECOND, judged, opened, view
from unit.synthetic import HISTOGRAM, WORST_SOFTIRQ, Node, events, histogram

from tracer.alerts.alert import Severity
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import View
from tracer.alerts.rules import rules
from tracer.probes.napi import PROBE as NAPI

POLL = np.dtype(
    [("cpu", "u4"), ("device", "S16"), ("napi_id", "u4"), ("budget", "u4")]
    + [(name, "u8") for name in ("polls", "work", "full", "streak", "streak_max")]
)
RUN = np.dtype([("cpu", "u4"), ("irq", "i4"), ("name", "S32"), ("none_count", "u8"), ("none_ns", "u8"), *HISTOGRAM])


def waiting(comm: bytes, seconds: float, **more: Any) -> dict[str, Any]:
    return {"cpu": 2, "kind": b"runnable", "age_ns": int(seconds * SECOND), "pid": 21, "comm": comm, **more}


@pytest.mark.parametrize(("seconds", "severity"), [(0.9, None), (1.5, Severity.WARNING), (5, Severity.PAGE)])
def test_a_softirq_thread_that_does_not_run(seconds, severity):
    found = judged("softirq-unserved", view(50, {"cpustall.open": opened(waiting(b"ksoftirqd/2", seconds))}))
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert judged("runnable-starved", view(50, {"cpustall.open": opened(waiting(b"ksoftirqd/2", 9))})) == []


def test_another_cpus_softirq_thread_is_only_a_task():
    rows = opened(waiting(b"ksoftirqd/3", 9))
    assert judged("softirq-unserved", view(50, {"cpustall.open": rows})) == []
    assert len(judged("runnable-starved", view(50, {"cpustall.open": rows}))) == 1


def late(seconds: float, kind: int = 1) -> np.ndarray:
    row = {"time_ns": 49 * SECOND, "kind": kind, "duration_ns": int(seconds * SECOND), "cpu": 2, "vector": 3}
    return events(WORST_SOFTIRQ, {**row, "pid": 7, "comm": b"hog"})


def test_a_softirq_served_late_names_who_was_before_it():
    (found,) = judged("softirq-unserved", view(50, {"cpustall.open": opened(), "softirq.worst": late(1.2)}))
    assert found.summary == "CPU 2: softirq NET_RX was served 1.2 s late, behind hog[7]"
    assert found.since_ns == 47_800_000_000 and found.culprit and found.culprit.task == "hog[7]"
    for rows in (late(0.3), late(3, kind=2)):
        assert judged("softirq-unserved", view(50, {"cpustall.open": opened(), "softirq.worst": rows})) == []


def test_a_stuck_cpu_is_told_once():
    stuck = {"cpu": 2, "kind": b"softirq", "age_ns": 6 * SECOND, "pid": 0, "comm": b"swapper/2", "vector": 1}
    seen = view(50, {"cpustall.open": opened(stuck, waiting(b"ksoftirqd/2", 6)), "softirq.worst": late(2)})
    assert judged("softirq-unserved", seen) == []
    assert len(judged("soft-lockup", seen)) == 1
    # The stall has ended, and what waited behind it is told of now.
    for ended, said in ((2 * SECOND, 0), (SECOND // 2, 1)):
        over = histogram([("cpu", "u4")], {(2,): [ended]})
        tables = {"cpustall.open": opened(), "cpustall.stall": over, "softirq.worst": late(2)}
        assert len(judged("softirq-unserved", view(50, tables))) == said


def test_who_waits_behind_a_stuck_cpu_does_not_starve():
    stuck = {"cpu": 2, "kind": b"stall", "age_ns": 6 * SECOND, "pid": 5, "comm": b"insmod"}
    assert judged("runnable-starved", view(50, {"cpustall.open": opened(stuck, waiting(b"sh", 6))})) == []


def polls(**more: Any) -> np.ndarray:
    row = {"cpu": 3, "device": b"eth0", "napi_id": 8195, "budget": 64, "polls": 9000, "work": 576_000, "full": 9000}
    return events(POLL, {**row, "streak": 9000, "streak_max": 9000, **more})


def test_a_queue_that_never_empties_is_told_after_5_s():
    engine = Engine([rules()["napi-full-budget"]], Identity("cu39", "b007", 0))
    told = [second for second in range(20) if engine.judge(view(100 + second, {"napi.poll": polls()}))]
    assert told == [5]
    (found,) = judged("napi-full-budget", view(100, {"napi.poll": polls()}))
    assert found.summary == (
        "eth0: CPU 3 polls it at full budget 100 % of the time and never empties it (576 k/s packets, queue 8195)"
    )


@pytest.mark.parametrize(
    "more", [{"full": 7000}, {"streak_max": 300}, {"budget": 8}, {"budget": 0}, {"polls": 50, "full": 50}]
)
def test_busy_queues_are_not_full_ones(more):
    assert judged("napi-full-budget", view(100, {"napi.poll": polls(**more)})) == []


def test_queues_of_one_device_are_one_alert():
    rows = np.concatenate([polls(cpu=cpu, napi_id=8192 + cpu, work=cpu) for cpu in range(1, 8)])
    (found,) = judged("napi-full-budget", view(100, {"napi.poll": rows}))
    assert "CPU 7 polls" in found.summary and found.summary.endswith("; 6 other queues as well")


def test_the_columns_are_those_of_the_probe():
    (table,) = NAPI.tables
    assert set(POLL.names or ()) <= {*table.keys, *table.counters, *table.gauges, *table.peaks, *table.by}  # type: ignore[union-attr]


def storm(share: float, none: float = 0.0) -> View:
    row = {"cpu": 1, "irq": 7, "name": b"lab_nic", "sum": int(share * SECOND), "none_ns": int(none * SECOND)}
    return view(100, {"hardirq.run": events(RUN, row, {"cpu": 0, "irq": 1_000_236, "name": b"LOC", "sum": 9_000_000})})


@pytest.mark.parametrize(
    ("share", "none", "severity"),
    [(0.3, 0, None), (0.6, 0, Severity.WARNING), (0.95, 0, Severity.PAGE), (0.1, 0.85, Severity.PAGE)],
)
def test_an_interrupt_storm(share, none, severity):
    found = judged("interrupt-storm", storm(share, none))
    assert [(str(each.subject), each.severity) for each in found] == ([("CPU 1", severity)] if severity else [])
    assert all("irq 7 lab_nic" in each.summary for each in found)


def test_a_busy_healthy_node_says_nothing():
    node = Node()
    for second in range(30):
        windows = node.interval(busy=dict.fromkeys(range(8), (0.93, 0.04, 0.02)))
        windows = [window for window in windows if (window.probe, window.table) != ("napi", "poll")]
        latest = {(window.probe, window.table): window for window in windows}
        for rule in rules().values():
            if all(table in latest for table in rule.needs):
                assert list(rule.judge(View(windows[0].end_ns, latest))) == [], (rule.name, second)
