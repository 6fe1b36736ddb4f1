"""Rules on what this kernel really shows: a stall made on purpose, judged from windows of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel.holding import Holder, on_cpu

from tracer.alerts.alert import Condition, Severity
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import View
from tracer.alerts.rules import rules
from tracer.kernel.cpus import parse_list

SECOND = 1_000_000_000


@pytest.fixture
def cpu() -> Iterator[int]:
    """A CPU to hold up; this thread moves to another."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one CPU: nobody can watch it stall")
    held = max(allowed)
    os.sched_setaffinity(0, allowed - {held})
    yield held
    os.sched_setaffinity(0, allowed)


def test_a_real_stall(attach, cpu):
    traced = attach("cpustall", "detectors")
    views: list[View] = []
    settings: dict[str, str] = {}

    def look() -> None:
        windows = traced.collect()
        for row in windows["detectors.settings"].rows:
            settings[row["name"].decode()] = row["value"].decode()
        latest = {(window.probe, window.table): window for window in windows.values()}
        views.append(View(windows["cpustall.open"].end_ns, latest, settings))

    look()
    with Holder(3.2) as holder:
        began_ns = time.monotonic_ns()
        worker = on_cpu(cpu, holder.hold_softirq)
        time.sleep(1.5)
        look()
        time.sleep(1.0)
        look()
        worker.join()
    time.sleep(0.3)
    look()
    found = [[each for each in rules()["soft-lockup"].judge(view) if each.subject.name == str(cpu)] for view in views]
    (first,), (second,) = found[1:3]
    assert first.severity is second.severity is Severity.WARNING
    assert first.since_ns == second.since_ns == pytest.approx(began_ns, abs=0.2 * SECOND)
    assert first.culprit and first.culprit.context == "softirq NET_RX" and len(first.culprit.stack) > 3
    assert_counted_down(first, cpu, settings, began_ns)
    # Two processes that saw different windows of it name the same occurrence.
    engines = [Engine([rules()["soft-lockup"]], Identity("here", "b007", 0)) for _ in range(2)]
    ids = {alert.id for engine, view in zip(engines, views[1:3], strict=True) for alert in engine.judge(view)}
    assert len(ids) == 1


def assert_counted_down(found: Condition, cpu: int, settings: dict[str, str], began_ns: int) -> None:
    watched = parse_list(Path("/proc/sys/kernel/watchdog_cpumask").read_text())
    if settings.get("kernel.soft_watchdog") != "1" or cpu not in watched:
        assert found.countdown is None
        return
    thresh_s = int(settings["kernel.watchdog_thresh"])
    assert found.countdown and found.countdown.panics == (settings["kernel.softlockup_panic"] != "0")
    # It was fed one period ago at the earliest, and the detector acts 2.4 times the threshold after that or later.
    left_s = (found.countdown.latest_ns - began_ns) / SECOND
    assert 1.9 * thresh_s <= left_s <= 2.9 * thresh_s
