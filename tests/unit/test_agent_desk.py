"""Who hears what the agent tells: rules on trial, alerts of an earlier process, the end of what others see go on."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from unit.agent_samples import SECOND, FakeSink, an_alert

from tracer.agent.agent import Agent
from tracer.agent.board import AGENT, Board
from tracer.agent.boxwatch import BoxWatch
from tracer.agent.desk import Desk
from tracer.alerts.alert import Alert, State
from tracer.blackbox.recorder import Status
from tracer.sinks import open_sink
from tracer.sinks.text import Terminal


class Kept:
    """A slow sink, or a recorder."""

    name = "kept"

    def __init__(self) -> None:
        self.got: list[Alert] = []

    def send(self, alert: Alert) -> None:
        self.got.append(alert)

    alert = send

    def close(self) -> None: ...


class Repeated(Kept):
    """A sink where alerts end that nobody repeats."""

    repeat_seconds = 60.0

    def repeat(self) -> None: ...


def _desk(board: Board, *slow: Any, **more: Any) -> Desk:
    return Desk(board, [], slow, lambda text: None, **more)


def test_a_rule_on_trial_is_told_to_files_the_black_box_and_the_stream_and_marked(tmp_path: Path):
    path, recorder = tmp_path / "alerts.json", Kept()
    stream: Any = FakeSink()
    desk = _desk(Board(), open_sink(f"json:{path}"), recorder=recorder, stream=stream)
    alert = replace(an_alert(), shadow=True)
    desk.deliver(alert)
    desk.close()
    assert json.loads(path.read_text())["shadow"] is True
    assert recorder.got == stream.got == [alert]


def test_what_an_earlier_process_told_goes_on_where_it_would_end_by_itself():
    once, repeated = Kept(), Repeated()
    desk = _desk(Board(), once, repeated)
    desk.resume([an_alert()])
    desk.close()
    assert repeated.got == [an_alert()] and once.got == []


def test_a_sink_that_can_not_be_written_is_told_once_and_keeps_nobody_from_hearing(monkeypatch):
    other = FakeSink()
    with open("/dev/full", "w") as full:
        desk = Desk(Board(), [Terminal(full), other], [], lambda text: None)
    for cpu in range(3):
        desk.deliver(an_alert(cpu))
        desk.send()
    assert len(other.got) == 3 and not list(desk.troubles())
    now_ns = time.monotonic_ns() + 3 * SECOND
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    assert list(desk.troubles()) == ["terminal takes no alerts: no space left on device; they wait, 256 at most"]
    assert not list(desk.troubles())
    desk.close()


def test_a_sink_whose_reader_is_slow_is_told_and_so_is_its_end(monkeypatch):
    slow = FakeSink("json -", takes=False)
    desk = Desk(Board(), [slow], [], lambda text: None)
    desk.deliver(an_alert())
    desk.send()
    now_ns = time.monotonic_ns() + 3 * SECOND
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    assert "json - takes no alerts: its reader does not read" in next(desk.troubles())
    slow.takes = True
    desk.send()
    assert next(desk.troubles()).startswith("json - takes alerts again, after 3")
    assert slow.got


def test_a_sentinel_does_not_end_what_the_agent_sees_go_on():
    board, sink = Board(), Kept()
    desk = _desk(board, sink)
    over = replace(an_alert(), state=State.RESOLVED, source="sentinel 0")
    board.hold(AGENT, [], [an_alert()], time.monotonic_ns() + 60 * SECOND)
    desk.forward(an_alert(), 0)
    desk.forward(over, 0)
    board.hold(AGENT, [over], [], 0)
    desk.forward(over, 0)
    desk.close()
    assert sink.got == [an_alert(), over]


@pytest.mark.parametrize("begins", [False, True])
def test_what_is_told_once_is_told_again_in_each_of_the_black_boxs_segments(begins):
    told: list[Any] = []
    recorder = SimpleNamespace(windows=lambda windows: told.append(windows), begins_again=lambda: begins)
    trace = SimpleNamespace(forget=lambda: told.append("forget"))
    agent: Any = SimpleNamespace(recorder=recorder, trace=trace, stream=None, _keeper=None)
    Agent._pass_on(agent, ["window"])  # type: ignore[list-item]
    assert told == [["window"], "forget"] if begins else [["window"]]


def _status(**numbers: int) -> Status:
    return Status(**{"path": "/box", "dropped": 0, "durable": 9, "lost": 0, "behind": 0, "error": "", **numbers})  # type: ignore[arg-type]


def test_a_black_box_that_gets_worse_is_told_at_its_beginning_and_when_it_has_doubled():
    watch = BoxWatch()
    notes = [
        [*watch.notes([_status(dropped=dropped, behind=behind)])]
        for dropped, behind in ((0, 3), (1, 8), (1, 9), (2, 9), (3, 9), (4, 16))
    ]
    assert [len(each) for each in notes] == [0, 1, 0, 1, 0, 1]
    assert notes[1] == ["black box /box: 1 dropped, 0 lost, 8 behind"]
    (died,) = BoxWatch().notes([_status(dropped=1, died=1)])
    assert died == "black box /box: 1 dropped, 0 lost, 0 behind, 1 writer died and started anew"
    (refused,) = BoxWatch().notes([replace(_status(lost=2), error="no space left")])
    assert refused == "black box /box: 0 dropped, 2 lost (no space left), 0 behind"
