"""Rules for blocked tasks, RCU, workqueues, adapters, hardware, OOM kills and the log: when and what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from unit.alert_views import SECOND, judged, opened, stalls, view
from unit.test_logpatterns import ROW

from tracer.alerts.alert import Condition, Severity, State
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import View
from tracer.alerts.rules import rules
from tracer.histogram import SLOTS
from tracer.kernel.readers.hung import _BLOCKED, _DETECTOR
from tracer.kernel.readers.workqueue import _ROW as WORK
from tracer.probes.precursors import _TOLD as TOLD

NOW = 1000
HUNG = {"kernel.hung_task_timeout_secs": 120, "kernel.hung_task_panic": 1}
RCU = {"rcupdate.rcu_cpu_stall_timeout": 21}
WQ = {"workqueue.watchdog_thresh": 30}
GRACE = np.dtype([("state", "S16"), ("begun_ns", "u8"), ("age_ns", "u8"), ("sum", "u8"), ("slots", "u4", (SLOTS,))])
STACK = b"__schedule;schedule;io_schedule;folio_wait_bit_common;nfs_wait_bit [nfs];ksys_write"


def filled(dtype: np.dtype, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    table = np.zeros(len(rows), dtype)
    for row, values in zip(table, rows, strict=True):
        for name, value in values.items():
            row[name] = value
    return table


def blocked(*ages_s: float, counted: str = "yes", **more: Any) -> np.ndarray:
    rows = [
        {"pid": 4411 + n, "comm": b"python3", "age_ns": int(age * SECOND), "since_ns": int((NOW - age) * SECOND)}
        | {"counted": counted.encode(), "stack": STACK, **more}
        for n, age in enumerate(ages_s)
    ]
    return filled(_BLOCKED, rows)


def one(rule: str, seen: View) -> Condition:
    (condition,) = judged(rule, seen)
    return condition


def told(condition: Condition, now_s: float = NOW) -> str:
    assert condition.countdown
    return condition.countdown.told(int(now_s * SECOND))


@pytest.mark.parametrize(("age_s", "speaks"), [(29, False), (31, True)])
def test_hung_tasks_are_told_at_a_quarter_of_the_timeout(age_s, speaks):
    assert bool(judged("hung-task", view(NOW, {"hung.blocked": blocked(age_s)}, settings=HUNG))) is speaks


@pytest.mark.parametrize(("age_s", "speaks"), [(7, False), (8, True)])
def test_a_quarter_is_of_the_time_until_the_detector_may_first_speak(age_s, speaks):
    settings = HUNG | {"kernel.hung_task_timeout_secs": 30}
    assert bool(judged("hung-task", view(NOW, {"hung.blocked": blocked(age_s)}, settings=settings))) is speaks


def test_a_shorter_timeout_has_a_shorter_quarter():
    seen = view(NOW, {"hung.blocked": blocked(6)}, settings=HUNG | {"kernel.hung_task_timeout_secs": 10})
    assert one("hung-task", seen).severity is Severity.PAGE


def test_the_oldest_hung_task_is_named_and_the_others_counted():
    condition = one("hung-task", view(NOW, {"hung.blocked": blocked(50, 40, 35, 3)}, settings=HUNG))
    assert condition.summary == "3 tasks blocked for up to 50 s: first python3[4411] in nfs_wait_bit [nfs]"
    assert condition.culprit and condition.culprit.module == "nfs"
    assert condition.culprit.stack[:2] == ("__schedule", "schedule")
    assert condition.numbers == {"tasks": 3, "blocked_s": 50}
    assert (condition.severity, told(condition)) == (Severity.PAGE, "panic in ≤ 190 s".replace("190 s", "3 min 10 s"))


@pytest.mark.parametrize(
    ("settings", "severity", "words"),
    [
        ({"kernel.hung_task_panic": 0}, Severity.WARNING, "will be logged in ≤ 3 min 20 s, no panic"),
        ({"kernel.hung_task_panic": 3}, Severity.WARNING, "will be logged in ≤ 3 min 20 s, no panic"),
        ({"kernel.hung_task_panic": 2}, Severity.PAGE, "panic in ≤ 3 min 20 s"),
        ({"kernel.hung_task_check_interval_secs": 10}, Severity.PAGE, "panic in ≤ 90 s"),
    ],
)
def test_the_kernels_settings_decide_what_hung_tasks_lead_to(settings, severity, words):
    condition = one("hung-task", view(NOW, {"hung.blocked": blocked(40, 40)}, settings=HUNG | settings))
    assert (condition.severity, told(condition)) == (severity, words)


def test_a_detector_that_is_off_has_no_countdown():
    settings = HUNG | {"kernel.hung_task_timeout_secs": 0}
    condition = one("hung-task", view(NOW, {"hung.blocked": blocked(40)}, settings=settings))
    assert condition.countdown is None and "no countdown: kernel.hung_task_timeout_secs=0" in condition.summary


@pytest.mark.parametrize(
    ("scanned_s", "age_s", "acts_s"),
    [
        (950, 40, 950 + 240),  # asleep since 960: the look at 1070 notes it, the one at 1190 reports it
        (950, 60, 950 + 120),  # asleep since 940: noted at 950, reported at 1070
        (950, 50.5, 949.5 + 240),  # in the second of the look, perhaps after it: the budget is what is certain
        (0, 40, 960 + 240),  # no look seen yet
    ],
)
def test_a_look_of_the_detector_that_was_seen_tells_when_it_acts(scanned_s, age_s, acts_s):
    tables = {"hung.blocked": blocked(age_s), "hung.detector": np.array([(scanned_s * SECOND, 0)], _DETECTOR)}
    condition = one("hung-task", view(NOW, tables, settings=HUNG))
    assert condition.countdown and condition.countdown.latest_ns == acts_s * SECOND


def test_killable_sleeps_are_told_apart():
    seen = view(NOW, {"hung.blocked": blocked(61, counted="no")}, settings=HUNG)
    assert judged("hung-task", seen) == []
    condition = one("blocked-task", seen)
    assert "do not trigger the hung task detector" in condition.summary
    assert (condition.severity, condition.countdown) == (Severity.WARNING, None)
    assert judged("blocked-task", view(NOW, {"hung.blocked": blocked(59, counted="no")})) == []


def test_a_sleep_from_before_says_that_it_may_be_killable():
    condition = one("hung-task", view(NOW, {"hung.blocked": blocked(40, counted="unknown")}, settings=HUNG))
    assert "perhaps killably" in condition.summary


def precursor(kind: str, **values: Any) -> dict[str, Any]:
    return {"time_ns": (NOW - 1) * SECOND, "kind": kind.encode(), **values}


def said(*rows: dict[str, Any], lines: tuple[str, ...] = (), settings: Any = None, history: Any = None) -> View:
    """Return a view of what the kernel said by tracepoint, and logged, in the last second."""
    log = np.zeros(len(lines), ROW)
    for row, line in zip(log, lines, strict=True):
        row["text"], row["count"], row["time_ns"] = line.encode(), 1, int((NOW - 0.5) * SECOND)
    tables = {"precursors.told": filled(TOLD, rows), "kernellog.lines": log}
    past = {"precursors.told": [filled(TOLD, each) for each in history]} if history else None
    return view(NOW, tables, settings=settings, history=past)


def test_the_kernels_report_of_a_hung_task_is_the_last_word():
    seen = said(precursor("hung_task", pid=4411, comm=b"python3"), settings=HUNG)
    condition = one("hung-task-report", seen)
    assert (condition.severity, told(condition)) == (Severity.PAGE, "panic any moment")
    seen = said(lines=("INFO: task python3:4411 blocked for more than 120 seconds.",))
    condition = one("hung-task-report", seen)
    assert (condition.severity, condition.countdown) == (Severity.WARNING, None)


def grace(age_s: float) -> np.ndarray:
    rows = np.zeros(1, GRACE)
    rows["age_ns"], rows["begun_ns"] = age_s * SECOND, (NOW - age_s) * SECOND
    return rows


@pytest.mark.parametrize(
    ("age_s", "settings", "severity", "words"),
    [
        (4.9, {}, None, ""),
        (5.3, {}, Severity.WARNING, "will be logged in ≤ 15.8 s, no panic"),
        (11, {}, Severity.PAGE, "will be logged in ≤ 10.1 s, no panic"),
        (5.3, {"kernel.panic_on_rcu_stall": 1}, Severity.PAGE, "panic in ≤ 15.8 s"),
        (5.3, {"kernel.panic_on_rcu_stall": 1, "kernel.max_rcu_stall_to_panic": 2}, Severity.PAGE, "panic in ≤ 79.1 s"),
        (1, {"rcupdate.rcu_cpu_stall_timeout": 3}, Severity.WARNING, "will be logged in ≤ 2.1 s, no panic"),
    ],
)
def test_a_grace_period_that_does_not_end(age_s, settings, severity, words):
    found = judged("rcu-stall", view(NOW, {"rcu.grace": grace(age_s)}, settings=RCU | settings))
    assert [(each.severity, told(each)) for each in found] == ([(severity, words)] if severity else [])


def test_a_stalled_grace_period_names_the_cpu_that_is_held_up():
    row = {"cpu": 3, "duration_ns": 6 * SECOND, "pid": 0, "comm": b"swapper/3", "context": b"softirq TIMER"}
    tables = {"rcu.grace": grace(6), "cpustall.stalls": stalls(row | {"stack": [0x10, 0x20, 0x30]})}
    condition = one("rcu-stall", view(NOW, tables, settings=RCU))
    assert "CPU 3 is held up by softirq TIMER in spin_fn [lab_mod]" in condition.summary
    assert condition.culprit and condition.culprit.module == "lab_mod"
    still = opened({"cpu": 5, "kind": b"softirq", "age_ns": 6 * SECOND, "vector": 3, "comm": b"x", "pid": 9})
    condition = one("rcu-stall", view(NOW, {"rcu.grace": grace(6), "cpustall.open": still}, settings=RCU))
    assert "CPU 5 is held up" in condition.summary and condition.culprit
    assert condition.culprit.context == "softirq NET_RX"


@pytest.mark.parametrize(
    ("held_s", "waiting_s", "words"),
    [
        (3.9, 3.0, None),
        (4.1, 0.1, None),
        (4.1, 0.3, "panic in ≤ 17 s"),
        (6.0, 3.0, "panic in ≤ 15.1 s"),
        (3.0, 6.0, "panic in ≤ 15.1 s"),
    ],
)
def test_a_grace_period_is_as_old_as_the_stall_that_holds_it_up(held_s, waiting_s, words):
    still = opened({"cpu": 5, "kind": b"stall", "age_ns": int(held_s * SECOND), "comm": b"x", "pid": 9})
    tables = {"rcu.grace": grace(waiting_s), "cpustall.open": still}
    found = judged("rcu-stall", view(NOW, tables, settings=RCU | {"kernel.panic_on_rcu_stall": 1}))
    assert [told(each) for each in found] == ([words] if words else [])


def test_the_kernels_rcu_warning_precedes_the_panic():
    row = precursor("rcu_stall", name=b"rcu_preempt", text=b"SelfDetected")
    condition = one("rcu-stall-warning", said(row, settings=RCU | {"kernel.panic_on_rcu_stall": 1}))
    assert told(condition) == "panic any moment" and "rcu_preempt" in condition.summary
    later = {"kernel.panic_on_rcu_stall": 1, "kernel.max_rcu_stall_to_panic": 2}
    assert told(one("rcu-stall-warning", said(row, settings=RCU | later))) == "panic in ≤ 62.3 s"
    assert one("rcu-stall-warning", said(row, settings=RCU)).countdown is None
    line = said(lines=("rcu: INFO: rcu_sched self-detected stall on CPU",), settings=RCU)
    assert "rcu_sched" in one("rcu-stall-warning", line).summary


def work(kind: str, age_s: float, **more: Any) -> dict[str, Any]:
    row = {"kind": kind.encode(), "age_ns": int(age_s * SECOND), "since_ns": int((NOW - age_s) * SECOND)}
    return row | {"cpu": 3, "pool": 6, "function": 0x50} | more


def test_a_pool_that_begins_nothing():
    rows = filled(WORK, [work("pool", 8), work("pool", 7.9, pool=7), work("work", 9, pid=812, comm=b"kworker/3:1+x")])
    condition = one("workqueue-stall", view(NOW, {"workqueue.open": rows}, settings=WQ))
    assert condition.summary == "the kernel's workers of CPU 3 have begun nothing for 8 s; ext4_writepages waits"
    assert condition.culprit and condition.culprit.task == "kworker/3:1+x[812]"
    assert (condition.severity, told(condition)) == (Severity.WARNING, "will be logged in ≤ 52 s, no panic")
    panics = WQ | {"workqueue.panic_on_stall": 1}
    condition = one("workqueue-stall", view(NOW, {"workqueue.open": rows}, settings=panics))
    assert (condition.severity, told(condition)) == (Severity.PAGE, "panic in ≤ 52 s")
    young = filled(WORK, [work("pool", 7)])
    assert judged("workqueue-stall", view(NOW, {"workqueue.open": young}, settings=WQ)) == []


def test_unbound_pools_are_nodes_matters():
    rows = filled(WORK, [work("pool", 8, cpu=-1, pool=8)])
    condition = one("workqueue-stall", view(NOW, {"workqueue.open": rows}))
    assert str(condition.subject) == "node unbound pool 8"
    assert "no countdown: this kernel has no workqueue.watchdog_thresh" in condition.summary


@pytest.mark.parametrize(("age_s", "severity"), [(119, None), (121, Severity.INFO), (601, Severity.WARNING)])
def test_a_work_that_does_not_end(age_s, severity):
    rows = filled(WORK, [work("work", age_s, pid=812, comm=b"kworker/3:1+x", stack=b"schedule;io_wait [lab]")])
    found = judged("long-work", view(NOW, {"workqueue.open": rows}))
    assert [each.severity for each in found] == ([severity] if severity else [])
    if found:
        assert found[0].subject.name == "work ext4_writepages" and found[0].culprit
        assert found[0].culprit.stack == ("schedule", "io_wait")


TIMEOUT = precursor("tx_timeout", name=b"eth0", text=b"igb", number=5)
RESET = "igb 0000:01:00.0 eth0: Reset adapter"
WATCHDOG = "igb 0000:01:00.0 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 5 timed out 5500 ms"


def test_a_transmit_timeout_and_what_is_logged_about_it_are_one_alert():
    condition = one("tx-timeout", said(TIMEOUT, lines=(WATCHDOG, RESET)))
    assert condition.summary == (
        "eth0: transmit queue 5 has timed out (driver igb) (also: eth0: the driver resets the adapter)"
    )
    assert condition.since_ns == TIMEOUT["time_ns"]
    assert condition.culprit and condition.culprit.module == "igb"
    assert condition.severity is Severity.WARNING


def test_a_sentinel_sees_the_tracepoint_alone_and_means_the_same_alert():
    alone, whole = one("tx-timeout", said(TIMEOUT)), one("tx-timeout", said(TIMEOUT, lines=(WATCHDOG,)))
    assert (alone.subject, alone.since_ns) == (whole.subject, whole.since_ns)


def test_a_kernel_without_the_tracepoint_tells_by_its_log():
    (eth0, eth1) = judged("tx-timeout", said(lines=(WATCHDOG, "igb 0000:01:00.1 eth1: Reset adapter")))
    assert (eth0.subject.name, eth1.subject.name) == ("eth0", "eth1")
    assert eth0.summary.startswith("eth0: transmit queue 5 has timed out")


def test_an_adapter_that_is_reset_again_and_again_is_a_page():
    history = [[TIMEOUT | {"time_ns": (NOW - age) * SECOND}] for age in (500, 300)] + [[TIMEOUT]]
    condition = one("tx-timeout", said(TIMEOUT, history=history))
    assert condition.severity is Severity.PAGE and "3 times in 10 min" in condition.summary
    old = [[TIMEOUT | {"time_ns": (NOW - age) * SECOND}] for age in (900, 700)] + [[TIMEOUT]]
    assert one("tx-timeout", said(TIMEOUT, history=old)).severity is Severity.WARNING


@pytest.mark.parametrize(
    ("row", "subject", "severity", "words"),
    [
        (precursor("memory_error", name=b"DIMM_A1", number=0, value=3), "memory DIMM_A1", Severity.INFO, "corrected"),
        (precursor("memory_error", name=b"DIMM_A1", number=1, value=1), "memory DIMM_A1", Severity.PAGE, "uncorrected"),
        (precursor("memory_error", number=99), "memory memory", Severity.WARNING, "unknown"),
        (precursor("machine_check", cpu=7, number=4, value=0x8C00004000010092), "CPU 7", Severity.INFO, "bank 4"),
        (precursor("machine_check", cpu=7, number=4, value=0xB200000000070F0F), "CPU 7", Severity.PAGE, "uncorrected"),
        (precursor("pcie_error", name=b"0000:3b:00.0", number=2, value=1), "device 0000:3b:00.0", Severity.INFO, "0x1"),
        (precursor("pcie_error", name=b"0000:3b:00.0", number=1), "device 0000:3b:00.0", Severity.PAGE, "fatal"),
        (precursor("memory_failure", value=0x12345), "memory page", Severity.WARNING, "0x12345"),
        (precursor("iommu_fault", name=b"0000:3b:00.0"), "device 0000:3b:00.0", Severity.WARNING, "IOMMU"),
    ],
)  # fmt: skip
def test_hardware_errors(row, subject, severity, words):
    condition = one("hardware-error", said(row))
    assert (str(condition.subject), condition.severity) == (subject, severity)
    assert words in condition.summary


def test_many_corrected_errors_are_a_warning():
    row = precursor("memory_error", name=b"DIMM_A1", number=0, value=1)
    few, many = ([[row | {"time_ns": (NOW - age) * SECOND}] for age in range(n, 0, -1)] for n in (9, 10))
    assert one("hardware-error", said(row, history=few)).severity is Severity.INFO
    condition = one("hardware-error", said(row, history=many))
    assert condition.severity is Severity.WARNING and "10 in 10 min" in condition.summary
    line = "pcieport 0000:00:02.0: AER: Correctable error message received from 0000:06:00.0"
    assert one("hardware-error", said(lines=(line,) * 10)).severity is Severity.WARNING


@pytest.mark.parametrize(("trip", "severity"), [(1, Severity.INFO), (2, Severity.WARNING), (3, Severity.PAGE)])
def test_trip_points(trip, severity):
    condition = one("thermal-throttle", said(precursor("thermal_trip", name=b"x86_pkg_temp", number=trip)))
    assert condition.severity is severity and "x86_pkg_temp" in condition.summary


KILLED = "Killed process 4411 (python3) total-vm:9348kB, anon-rss:23000kB, file-rss:0kB, shmem-rss:0kB"


@pytest.mark.parametrize(
    ("line", "severity", "words"),
    [
        (f"Memory cgroup out of memory: {KILLED}", Severity.INFO, "its cgroup has reached its limit"),
        (f"Out of memory: {KILLED}", Severity.WARNING, "the node is out of memory"),
    ],
)
def test_an_oom_kill_is_one_alert_with_its_victim(line, severity, words):
    row = precursor("oom_kill", pid=4411, comm=b"python3", cgroup=b"/kubepods/x")
    invoked = "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    condition = one("oom-victim", said(row, lines=(invoked, line)))
    assert condition.summary.startswith("python3[4411] of /kubepods/x killed for lack of memory: ")
    assert words in condition.summary and condition.severity is severity
    assert (condition.since_ns, condition.numbers) == (row["time_ns"], {"kills": 1})
    assert one("oom-victim", said(row)).subject == condition.subject


def logged(text: str, time_s: float) -> np.ndarray:
    return filled(ROW, [{"time_ns": int(time_s * SECOND), "count": 1, "text": text.encode()}])


EFFORT = np.dtype([("allocation_stalls", "u8"), ("oom_kills", "u8")])
INFO = np.dtype([("total", "u8"), ("available", "u8")])
KILL = [precursor("oom_kill", pid=4411, comm=b"python3")]
LINE = f"Out of memory: {KILLED}"


@pytest.mark.parametrize("told_at", [None, 0, 1])
@pytest.mark.parametrize("logged_at", [None, 0, 1])
def test_one_kill_is_one_alert_whichever_source_comes_first(told_at, logged_at):
    """The count comes in interval 0, the tracepoint and the log's line then or one later, or not at all."""
    names = "oom-kill", "oom-victim", "kernel-warnings"
    engine = Engine([rules()[name] for name in names], Identity("cu39", "b007", 0))
    history: dict[str, list[np.ndarray]] = {"memory.effort": [], "precursors.told": [], "kernellog.lines": []}
    alerts = []
    for second in range(5):
        row = KILL[0] | {"time_ns": NOW * SECOND - SECOND // 2}
        history["memory.effort"].append(filled(EFFORT, [{"allocation_stalls": 9, "oom_kills": second == 0}]))
        history["precursors.told"].append(filled(TOLD, [row] if second == told_at else []))
        line = logged(LINE, NOW - 0.4) if second == logged_at else np.zeros(0, ROW)
        history["kernellog.lines"].append(line)
        info = filled(INFO, [{"total": 100, "available": 2}])
        alerts += engine.judge(view(NOW + second, {"memory.info": info}, history=history))
    assert {alert.rule for alert in alerts} == {"oom-kill" if told_at is logged_at is None else "oom-victim"}
    assert len({alert.id for alert in alerts}) == 1
    assert alerts[-1].severity is Severity.WARNING
    if told_at is not None:
        # The sentinel's own.
        lone = Engine([rules()["oom-victim"]], Identity("cu39", "b007", 0, "sentinel 0"))
        (told,) = lone.judge(view(NOW, {"precursors.told": history["precursors.told"][told_at]}))
        assert told.id == alerts[0].id and "python3[4411]" in alerts[-1].headline


def test_three_kills_of_the_whole_node_page_with_the_names():
    effort = [filled(EFFORT, [{"allocation_stalls": 9, "oom_kills": 1}])] * 3
    tables = {"memory.info": filled(INFO, [{"total": 100, "available": 2}]), "precursors.told": filled(TOLD, KILL)}
    (condition,) = judged("oom-victim", view(NOW, tables, history={"memory.effort": effort}))
    assert condition.severity is Severity.PAGE and condition.summary.startswith("python3[4411]")


@pytest.mark.parametrize(("cpu", "severity"), [(3, Severity.WARNING), (4, Severity.PAGE)])
def test_the_kernels_report_of_a_lockup_that_is_seen_already_pages_no_second_time(cpu, severity):
    line = f"watchdog: BUG: soft lockup - CPU#{cpu} stuck for 22s! [insmod:812]"
    seen = view(NOW, {
        "kernellog.lines": logged(line, NOW),
        "cpustall.open": opened({"cpu": 3, "kind": b"stall", "age_ns": 22 * SECOND}),
    })  # fmt: skip
    assert one("lockup-report", seen).severity is severity


def test_several_kills_are_counted():
    rows = [precursor("oom_kill", pid=4411 + n, comm=b"python3") for n in range(3)]
    assert "python3[4411] and 2 others killed" in one("oom-victim", said(*rows)).summary


def test_a_gpu_that_falls_off_the_bus_after_pcie_errors():
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
    aer = precursor("pcie_error", name=b"0000:3a:00.0", number=2)
    assert "PCIe errors came before, at 0000:3a:00.0" in one("gpu-error", said(aer, lines=(xid,))).summary
    line = "pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3a:00.0"
    assert "at 0000:3a:00.0" in one("gpu-error", said(lines=(line, xid))).summary
    history = [[aer | {"time_ns": (NOW - 104) * SECOND}], []]
    assert "at 0000:3a:00.0" in one("gpu-error", said(lines=(xid,), history=history)).summary
    assert "PCIe errors came before" not in one("gpu-error", said(lines=(xid,))).summary
    other = "NVRM: Xid (PCI:0000:3b:00): 48, pid=1234, DBE"
    assert "PCIe errors came before" not in one("gpu-error", said(aer, lines=(other,))).summary


def test_calm_views_say_nothing():
    tables = {
        "hung.blocked": blocked(),
        "hung.detector": np.array([(0, 0)], _DETECTOR),
        "rcu.grace": grace(0.01),
        "workqueue.open": filled(WORK, []),
        "precursors.told": filled(TOLD, []),
        "kernellog.lines": np.zeros(0, ROW),
    }
    calm = view(NOW, tables, history={"precursors.told": [filled(TOLD, [])]})
    known = set(tables)
    mine = [r for r in rules().values() if {".".join(table) for table in (*r.needs, *r.wants)} & known]
    assert len(mine) >= 20
    assert [rule.name for rule in mine if list(rule.judge(calm))] == []


def test_rules_that_run_in_sentinels_need_nothing_that_those_lack():
    fast = [rule for rule in rules().values() if rule.fast and ("precursors", "told") in rule.wants]
    assert len(fast) >= 5
    empty = View(NOW * SECOND, {})
    assert [rule.name for rule in fast if list(rule.judge(empty))] == []


def test_an_event_is_told_once_and_is_over_after_a_minute():
    engine = Engine([rules()["oom-victim"]], Identity("cu39", "b007", 0))
    (fired,) = engine.judge(said(precursor("oom_kill", pid=4411, comm=b"python3")))
    assert fired.state is State.FIRING
    quiet = {"precursors.told": filled(TOLD, [])}
    assert engine.judge(view(NOW + 30, quiet)) == []
    (resolved,) = engine.judge(view(NOW + 61, quiet))
    assert resolved.state is State.RESOLVED
