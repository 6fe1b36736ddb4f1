"""From what the kernel really does to one alert about it: probes, windows, rules, engine."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kernel.frozen import Frozen
from kernel.loops import broken_device, fail_to_read
from kernel.memory_group import EAT, small_group
from kernel.traced import Traced

from tracer.agent.lookout import Lookout
from tracer.agent.sight import Sight
from tracer.alerts.alert import Alert, Severity, State
from tracer.alerts.engine import Engine, Identity
from tracer.alerts.rule import View
from tracer.alerts.rules import rules
from tracer.kernel import cpus
from tracer.kernel.job import Options, ordered
from tracer.kernel.session import attach as attach_session
from tracer.probes import all_probes

SETTINGS = {"kernel.hung_task_timeout_secs": "12", "kernel.hung_task_panic": "1"}
__all__ = ["broken_device", "small_group"]


class Watch:
    """Probes, and every rule over their windows; the kernel's settings are what the test says."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._engine = Engine(rules().values(), Identity("here", "b007", 0))
        traced.collect()

    def look(self) -> list[Alert]:
        """Return what is told at the end of the interval that ends now."""
        windows = {tuple(name.split(".")): window for name, window in self._traced.collect().items()}
        told = self._engine.judge(View(time.monotonic_ns(), windows, SETTINGS))
        assert self._engine.broken == {}
        return told

    def until(self, rule: str, state: State, seconds: float = 10) -> list[Alert]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.25)
            told = [alert for alert in self.look() if (alert.rule, alert.state) == (rule, state)]
            if told:
                return told
        raise AssertionError(f"no {rule} was {state.value}")


@pytest.fixture
def watch(attach: Callable[..., Traced]) -> Iterator[Watch]:
    names = ("precursors", "hung", "workqueue", "kernellog", "rcu")
    assert all_probes().keys() >= set(names)
    yield Watch(attach(*names, HUNG_LISTED_NS=1_000_000_000))


def kill_in(group: Path) -> int:
    """Have a process use more memory than its group may; return the victim's pid."""
    enter = f'echo $$ > {group}/cgroup.procs; exec "$0" -S -c "$1"'
    with subprocess.Popen(["sh", "-c", enter, sys.executable, EAT]) as process:
        assert process.wait(timeout=30) == -signal.SIGKILL
    return process.pid


def test_a_kill_is_one_alert(watch, small_group):
    pid = kill_in(small_group)
    (alert,) = watch.look()
    assert (alert.rule, alert.severity) == ("oom-victim", Severity.INFO)
    assert f"[{pid}]" in alert.condition.summary
    assert "its cgroup has reached its limit" in alert.condition.summary


def test_a_kill_that_is_counted_traced_and_logged_is_one_alert(attach, small_group):
    traced, engine = attach("precursors", "kernellog", "memory"), Engine(rules().values(), Identity("here", "b007", 0))
    lookout, told = Lookout(rules().values(), 300_000_000, lambda address: ("", "")), []
    for turn in range(8):
        if turn == 2:
            pid = kill_in(small_group)
        time.sleep(0.3)
        told += engine.judge(lookout.view([*traced.collect().values()]))
    about = [alert for alert in told if alert.condition.subject.kind == "memory"]
    assert {alert.rule for alert in about} == {"oom-victim"} and len({alert.id for alert in about}) == 1
    assert f"[{pid}]" in about[-1].headline


def test_a_drive_that_fails_is_one_alert(watch, broken_device):
    fail_to_read(broken_device)
    (alert,) = watch.look()
    assert (alert.rule, alert.severity) == ("storage-error", Severity.WARNING)
    assert alert.condition.subject.name == Path(broken_device).name


def test_a_blocked_writer_is_one_alert_and_resolved(watch, tmp_path):
    with Frozen(tmp_path) as frozen:
        pid = frozen.block()
        (alert,) = watch.until("hung-task", State.FIRING)
        assert alert.severity is Severity.PAGE
        assert f"[{pid}]" in alert.condition.summary
        # A quarter of the first word, which comes at the latest two timeouts after the beginning.
        assert 3 <= alert.condition.numbers["blocked_s"] < 7
        assert "panic in ≤ " in alert.headline
        frozen.thaw()
        assert len(watch.until("hung-task", State.RESOLVED, 15)) == 1


def test_calm_seconds_say_nothing(watch):
    told = []
    for _ in range(10):
        time.sleep(1)
        told += watch.look()
    assert [alert.headline for alert in told if alert.severity is not Severity.INFO] == []


def test_each_sentinel_is_told_of_a_kill_at_once(small_group):
    every = all_probes()
    options = Options(cpus.possible_count(), cpus.online(), sentinels=2)
    fast = [rule for rule in rules().values() if rule.fast]
    identity = Identity("here", "b007", 0)
    with attach_session(ordered([every["precursors"], every["cpustall"]], every), options) as session:
        sights = [Sight(session, session.sentinel_ring(number), fast, lambda address: ("", "")) for number in range(2)]
        engines = [Engine(fast, identity) for _ in sights]
        kill_in(small_group)
        looks = [sight.look(time.monotonic_ns(), {}) for sight in sights]
        told = [
            [a for a in engine.judge(look) if a.rule == "oom-victim"]
            for engine, look in zip(engines, looks, strict=True)
        ]
    assert [len(alerts) for alerts in told] == [1, 1]
    # Whoever receives both knows that they are one.
    assert told[0][0].id == told[1][0].id
    assert "python" in told[0][0].condition.summary
