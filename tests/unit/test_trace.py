"""A running trace, without a kernel: when intervals end, and what the last one includes."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tracer.collect import trace as tracing
from tracer.collect.header import command_line
from tracer.collect.trace import Request, Trace
from tracer.errors import UsageError
from tracer.kernel.cgroups import CgroupNames


def test_a_command_line_is_bounded_harmless_and_without_secrets() -> None:
    url = "webhook:https://me:secret@hooks.example:443/T0/B1?token=secret"
    told = command_line(["/opt/x/foreshock", "agent", "--sink", url, f"--sink={url}", "\x1b[2J\udcff", "y" * 999])
    safe = "webhook:https://hooks.example:443/…"
    assert told == ["foreshock", "agent", "--sink", safe, f"--sink={safe}", "\\x1b[2J\\xff", "y" * 200 + "…"]
    assert len(command_line(["x"] * 5000)) == 66


def make_trace(interval_ns: int = 10_000_000) -> tuple[Trace, list[bool]]:
    """Return a trace of nothing, and of each interval whether it was asked to be complete."""
    asked: list[bool] = []

    def collect(*, complete: bool) -> list[Any]:
        asked.append(complete)
        return []

    trace: Any = object.__new__(Trace)
    trace.request = Request(interval_ns=interval_ns)
    trace.began_ns = time.monotonic_ns()
    trace._due_ns = trace.began_ns + interval_ns
    trace._collector = SimpleNamespace(collect=collect, keep_up=lambda: None)
    return trace, asked


def test_the_last_interval_of_a_duration_is_complete() -> None:
    trace, asked = make_trace()
    assert list(trace.intervals(threading.Event(), 35_000_000))
    assert asked[-1] and not any(asked[:-1]) and len(asked) > 1


def test_the_interval_in_which_it_is_stopped_is_complete() -> None:
    trace, asked = make_trace(60_000_000_000)
    stop = threading.Event()
    threading.Timer(0.02, stop.set).start()
    assert list(trace.intervals(stop)) == [[]]
    assert asked == [True]


def test_stopped_between_two_intervals_it_ends_with_a_short_one() -> None:
    trace, asked = make_trace()
    stop = threading.Event()
    for _ in trace.intervals(stop):
        stop.set()
    assert asked == [False, True]


def test_stopped_before_it_began_there_is_none() -> None:
    trace, asked = make_trace()
    stop = threading.Event()
    stop.set()
    assert list(trace.intervals(stop)) == [] and asked == []


def test_what_cannot_wait_is_taken_all_through_a_long_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_AT_ONCE_SECONDS", 0.01)
    trace, _ = make_trace()
    slept: list[float] = []
    taken: list[int] = []
    trace._collector = SimpleNamespace(keep_up=lambda: taken.append(len(slept)))

    def sleep(seconds: float) -> str:
        slept.append(seconds)
        time.sleep(seconds)
        return "key" if len(slept) > 10 else ""

    assert trace.wait(sleep, 0.05) == ""
    assert len(taken) == len(slept) - 1 >= 1 and max(slept) <= 0.01
    assert trace.wait(sleep, 60.0) == "key" and len(slept) == 11
    assert trace.wait(sleep, 0.005) == "key" and slept[-1] <= 0.005


def test_a_pid_of_another_namespace_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing.cpus, "in_host_pids", lambda: False)
    with pytest.raises(UsageError, match="pid namespace") as refused:
        Trace(Request(pid=os.getpid()))
    assert "nsenter" in refused.value.hint


def test_foreign_pids_are_not_looked_up() -> None:
    assert CgroupNames(foreign=True).cgroup_of(os.getpid()) == b""


@pytest.mark.parametrize(
    ("allowed", "undisturbed", "chosen"),
    [({0, 1, 2}, {1, 7}, {0, 2}), ({0, 1}, set(), None), ({1}, {1}, None), ({0}, {1}, None)],
)
def test_undisturbed_cpus_carry_no_thread_of_ours(
    monkeypatch: pytest.MonkeyPatch, allowed: set[int], undisturbed: set[int], chosen: set[int] | None
) -> None:
    asked: list[set[int]] = []
    monkeypatch.setattr(tracing.cpus, "undisturbed", lambda: undisturbed)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, others: asked.append(others))
    tracing.cpus.leave_undisturbed()
    assert asked == ([chosen] if chosen else [])
