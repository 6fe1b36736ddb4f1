"""Close-ups without a kernel: which alert has one and when not, what is joined, told and kept."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.agent_samples import SECOND, an_alert
from unit.alert_views import one, opened, view

from tracer.agent.closeups import Closeups
from tracer.alerts.alert import Alert, Countdown, Severity, State
from tracer.alerts.engine import Engine
from tracer.closeup import folder
from tracer.closeup.joining import joined
from tracer.closeup.limits import objection
from tracer.closeup.order import Order
from tracer.closeup.ring import Ring, encoded
from tracer.closeup.telling import Strongest
from tracer.closeup.terms import Budget, Terms
from tracer.errors import OutputError, UsageError
from tracer.recording import FrameDecoder, read_frame
from tracer.window import Window

TERMS = Terms(Severity.PAGE, 10 * SECOND, 600 * SECOND, 3, "/nowhere")
WAITS = np.dtype([("cpu", "u4"), ("sum", "u8"), ("slots", "u4", 4)])


def _waits(cpus: int, sum_ns: int, count: int) -> np.ndarray:
    return np.array([(cpu, sum_ns, (count, 0, 0, 0)) for cpu in range(cpus)], WAITS)


def _page(**more: Any) -> Alert:
    return an_alert(severity=Severity.PAGE, **more)


@pytest.mark.parametrize(
    ("alert", "means"),
    [
        (_page(), True),
        (an_alert(), False),
        (_page(state=State.RESOLVED), False),
        (_page(shadow=True), False),
    ],
)
def test_a_close_up_is_of_what_fires_in_earnest_and_is_bad_enough(alert: Alert, means: bool):
    assert TERMS.means(alert) is means


@pytest.mark.parametrize(
    "terms",
    [
        replace(TERMS, for_ns=SECOND),
        replace(TERMS, for_ns=61 * SECOND),
        replace(TERMS, pause_ns=SECOND),
        replace(TERMS, most_a_day=0),
    ],
)
def test_terms_that_make_no_sense_are_refused(terms: Terms):
    TERMS.check(SECOND)
    with pytest.raises(UsageError):
        terms.check(SECOND)
    with pytest.raises(UsageError, match="two intervals"):
        TERMS.check(6 * SECOND)


def test_there_is_a_pause_and_a_bound_a_day():
    budget = Budget(TERMS)
    for number in range(3):
        assert budget.objection(number * 600 * SECOND) == ""
        budget.spend(number * 600 * SECOND)
        assert "--closeup-pause" in budget.objection(number * 600 * SECOND + 599 * SECOND)
    assert "3 in 24 hours" in budget.objection(86_399 * SECOND)
    assert budget.objection(86_400 * SECOND) == ""


def test_an_agent_that_is_started_again_goes_on_counting(tmp_path: Path):
    for _ in range(2):
        (tmp_path / f"{folder.name_of(an_alert())}.fsk").touch()
    (tmp_path / "20250101T000000Z-x-00000000.fsk").touch()
    begun = folder.begun_ns(str(tmp_path), 10**18)
    assert len(begun) == 2 and 10**18 - begun[-1] < 5 * SECOND
    assert "--closeup-pause" in Budget(TERMS, begun).objection(10**18)


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({}, ""),
        ({"cpustall.open": opened({"cpu": 3, "kind": b"softirq", "age_ns": SECOND})}, "CPU 3 is stuck"),
        ({"cpustall.open": opened({"cpu": 3, "kind": b"softirq", "age_ns": 1000})}, ""),
        # A task that waits is no CPU that does not answer.
        ({"cpustall.open": opened({"cpu": 3, "kind": b"runnable", "age_ns": 9 * SECOND})}, ""),
        ({"runqueue.wait": _waits(2, 20 * SECOND, 1000)}, "20 tasks wait for each CPU"),
        ({"runqueue.wait": _waits(2, 10 * SECOND, 1000)}, ""),
        ({"runqueue.wait": _waits(2, 0, 150_000)}, "150 000 switches"),
        ({"memory.info": one(available=600 << 20)}, "of memory are left"),
        ({"memory.info": one(available=2 << 30)}, ""),
    ],
)
def test_a_node_that_can_not_bear_more_is_left_alone(tables: dict[str, np.ndarray], why: str):
    found = objection(view(100, tables), [_page()])
    assert why.replace("\u202f", " ") in found.replace("\u202f", " ") and bool(found) is bool(why)


def _panicking() -> Alert:
    condition = replace(_page().condition, countdown=Countdown("soft lockup detector", 10**12, True))
    return replace(_page(), condition=condition, id="0" * 16)


def test_nothing_is_attached_while_a_panic_is_near():
    assert "countdown" in objection(view(100, {}), [_panicking()])


class Standby:
    """Who is asked."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.asked: list[dict[str, Any]] = []
        self.says: list[dict[str, Any]] = []
        self.given = 0
        self.gone = False

    def say(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> str:
        self.asked.append(message)
        self.given += len(descriptors)
        return ""

    def received(self) -> list[dict[str, Any]]:
        if self.gone:
            raise EOFError
        said, self.says = self.says, []
        return said


@pytest.fixture
def asking(tmp_path: Path) -> tuple[Closeups, Standby, list[str]]:
    standby, notes = Standby(replace(TERMS, folder=str(tmp_path))), list[str]()
    return Closeups(standby, (), SECOND, notes.append), standby, notes  # type: ignore[arg-type]


def _engine() -> Engine:
    return Engine((), None)  # type: ignore[arg-type]


def test_one_at_a_time_and_each_alert_once(asking):
    closeups, standby, notes = asking
    for cpu in (1, 2):
        closeups.heard(_page(cpu=cpu, id=f"{cpu:016x}"), 0)
    closeups.begin(view(1, {}), [], 0)
    closeups.begin(view(2, {}), [], 0)
    assert [order["alert"]["id"] for order in standby.asked] == [f"{1:016x}"] and not notes
    standby.says = [{"failed": "no such luck"}, {"done": True}]
    assert not list(closeups.finished(_engine(), 2 * SECOND))
    assert notes == ["close-up of stuck: nothing was recorded: no such luck"]
    for cpu in (1, 3):
        closeups.heard(_page(cpu=cpu, id=f"{cpu:016x}"), 0)
    closeups.begin(view(3, {}), [], 0)
    assert len(standby.asked) == 1 and notes[-1].startswith("no close-up of stuck, CPU 3: ")
    assert "--closeup-pause" in notes[-1]


def test_without_one_it_is_said_which_one_is_near(tmp_path: Path):
    names = [f"20261130T16{minute}42Z-stuck-00000000" for minute in (10, 11)]
    for name in (f"{names[0]}.fsk", f"{names[1]}.fsk", f"{names[1]}.html"):
        (tmp_path / name).touch()
    standby, notes = Standby(replace(TERMS, folder=str(tmp_path), most_a_day=1)), list[str]()
    closeups = Closeups(standby, (), SECOND, notes.append)  # type: ignore[arg-type]
    closeups._budget.spend(0)
    closeups.heard(_page(), SECOND)
    closeups.begin(view(1, {}), [], 0)
    assert not standby.asked and notes[0].endswith(f"(--closeup-pause): see {tmp_path}/{names[1]}.html")


def test_alerts_that_fire_meanwhile_share_it_and_a_worse_one_goes_first(asking):
    closeups, standby, _ = asking
    closeups._terms = replace(TERMS, severity=Severity.WARNING)
    closeups.heard(an_alert(id="1" * 16), 0)
    closeups.heard(_page(id="2" * 16), 0)
    closeups.begin(view(1, {}), [], 0)
    assert [order["alert"]["id"] for order in standby.asked] == ["2" * 16]
    closeups.heard(an_alert(id="3" * 16), SECOND)
    standby.says = [{"recording": "/x.fsk"}, {"report": "/x.html"}, {"done": True}]
    assert [alert.id for alert in closeups.finished(_engine(), 2 * SECOND)] == [one * 16 for one in "213"]


def test_it_waits_for_a_better_moment_and_then_says_why_there_was_none(asking):
    closeups, standby, notes = asking
    closeups.heard(_page(), 0)
    stuck = {"cpustall.open": opened({"cpu": 3, "kind": b"stall", "age_ns": SECOND})}
    closeups.begin(view(29, stuck), [], 0)
    assert not notes
    closeups.begin(view(30, stuck), [], 0)
    assert (
        notes == ["no close-up of stuck, CPU 3: CPU 3 is stuck, and attaching would wait for it"] and not standby.asked
    )
    closeups.heard(_page(id="1" * 16), 31 * SECOND)
    closeups.begin(view(32, stuck), [], 0)
    closeups.begin(view(33, {}), [], 0)
    assert len(standby.asked) == 1


def test_a_countdown_ends_it_early(asking):
    closeups, standby, _ = asking
    closeups.heard(_page(), 0)
    closeups.begin(view(1, {}), [], 0)
    closeups.begin(view(2, {}), [_panicking()], 0)
    assert standby.asked[1:] == [{"end": True}]


def test_what_was_recorded_is_told_with_the_latest_of_its_alert(asking):
    closeups, standby, _ = asking
    closeups.heard(_page(), 0)
    closeups.begin(view(1, {}), [], 0)
    closeups.interval(SECOND, b"frame")
    standby.says = [{"traced": True}]
    assert not list(closeups.finished(_engine(), SECOND))
    closeups.interval(2 * SECOND, b"frame")
    closeups.interval(3 * SECOND, b"frame")
    assert standby.given == 1
    closeups.heard(_page(state=State.RESOLVED, sequence=7), 0)
    standby.says = [{"recording": "/x.fsk", "stacks": ["a line"]}, {"report": "/x.html"}, {"done": True}]
    (alert,) = closeups.finished(_engine(), 4 * SECOND)
    assert alert.state is State.RESOLVED and alert.sequence == 8
    assert alert.evidence and (alert.evidence.report, alert.evidence.stacks) == ("/x.html", ("a line",))


def test_without_a_report_the_recording_is_told_alone_and_why(asking):
    closeups, standby, notes = asking
    closeups.heard(_page(), 0)
    closeups.begin(view(1, {}), [], 0)
    standby.says = [
        {"recording": "/x.fsk", "cpu_s": 1.25},
        {"failed": "it took more memory than it may"},
        {"done": True},
    ]
    (alert,) = closeups.finished(_engine(), 2 * SECOND)
    assert alert.evidence and (alert.evidence.recording, alert.evidence.report) == ("/x.fsk", "")
    assert notes == [
        "close-up of stuck: without a report: it took more memory than it may",
        "close-up of stuck: /x.fsk, 1.2 s of CPU time",
    ]


def test_without_the_process_that_may_attach_it_says_so_once(asking):
    closeups, standby, notes = asking
    closeups.heard(_page(), 0)
    closeups.begin(view(1, {}), [], 0)
    standby.gone = True
    for now_s in (2, 3):
        assert not list(closeups.finished(_engine(), now_s * SECOND))
    closeups.heard(_page(id="1" * 16), 0)
    closeups.begin(view(4, {}), [], 0)
    assert len(notes) == 2 and "died" in notes[0] and len(standby.asked) == 1


def _window(probe: str, table: str, start_s: float, end_s: float, rows: np.ndarray | None = None) -> Window:
    rows = np.zeros(0, [("n", "u8")]) if rows is None else rows
    return Window(probe, table, round(start_s * SECOND), round(end_s * SECOND), rows)


def test_deep_windows_join_the_intervals_that_they_end_with():
    light = [[_window("softirq", "run", second, second + 1)] for second in range(3)]
    cost = np.array([(b"on_sched_switch", 5), (b"agent", 7)], [("program", "S32"), ("run_ns", "u8")])
    deep = [
        [
            _window("oncpu", "samples", 1.4, 2.01),
            _window("softirq", "run", 1.4, 2.01),
            _window("jobs", "members", 1, 2),
        ],
        [_window("oncpu", "samples", 2.01, 3.0), _window("agent", "cost", 2.01, 3.0, cost)],
        [_window("oncpu", "samples", 3.0, 3.9)],
    ]
    found = [
        [(one.probe, one.table) for one in windows] for windows in joined(light, deep, ("softirq", "agent", "jobs"))
    ]
    assert found == [
        [("softirq", "run")],
        [("softirq", "run"), ("oncpu", "samples"), ("jobs", "members")],
        [("softirq", "run"), ("oncpu", "samples"), ("agent", "cost")],
        [("oncpu", "samples")],
    ]
    (interval,) = (
        windows for windows in joined(light, deep, ("softirq", "agent", "jobs")) if windows[-1].probe == "agent"
    )
    assert interval[-1].rows["program"].tolist() == [b"deep on_sched_switch", b"agent"]


def _stacks(probe: str, samples: list[tuple[Any, ...]]) -> list[Window]:
    rows = np.array(
        samples, [("pid", "u4"), ("tid", "u4"), ("comm", "S16"), ("stack", "u8"), ("weight", "u8"), ("state", "S1")]
    )
    stacks = np.array(
        [(1, 0, 1), (1, 1, 2), (2, 0, 3), (3, 0, 1), (3, 1, 4)], [("stack", "u8"), ("depth", "u2"), ("frame", "u8")]
    )
    frames = np.array(
        [
            (1, b"k", b"", b"schedule"),
            (2, b"k", b"", b"read_it"),
            (3, b"u", b"x", b"compute"),
            (4, b"k", b"", b"do_nanosleep"),
        ],
        [("frame", "u8"), ("kind", "S1"), ("module", "S8"), ("symbol", "S16")],
    )
    named = {"samples": rows, "stacks": stacks, "frames": frames}
    return [_window(probe, table, 0, 1, each) for table, each in named.items()]


def _strongest(windows: list[Window], alert: Alert) -> tuple[str, ...]:
    found = Strongest(alert, {})
    found.add(windows)
    return found.lines()


def test_the_alerts_own_task_comes_first_then_who_weighs_most():
    on_cpu = _stacks(
        "oncpu", [(5, 5, b"busy", 2, 90, b""), (9, 10, b"spin", 2, 10, b""), (7, 7, b"foreshock", 2, 50, b"")]
    )
    off_cpu = _stacks("offcpu", [(4, 4, b"sleeper", 1, 9 * SECOND, b"S"), (3, 3, b"writer", 1, SECOND, b"D")])
    assert _strongest([*on_cpu, *off_cpu], _page(stack=("x",))) == (
        "writer[3] blocked (state D) for 1 s, most in read_it",
        "busy[5] on CPU in 90 of 150 samples (60 %), most in compute",
        "spin[9] on CPU in 10 of 150 samples (6.7 %), most in compute",
    )
    assert _strongest(off_cpu, _by("sleeper"))[0] == "sleeper[4] off CPU for 9 s, most in read_it"
    assert _strongest(on_cpu, _by("spin[10]"))[0] == "spin[9] on CPU in 10 of 150 samples (6.7 %), most in compute"


def _by(task: str) -> Alert:
    page = _page(stack=("x",))
    culprit = replace(page.condition.culprit, task=task)  # type: ignore[type-var]
    return replace(page, condition=replace(page.condition, culprit=culprit))


def test_what_hurts_is_said_before_what_merely_runs_and_idle_waits_are_not():
    on_cpu = _stacks("oncpu", [(5, 5, b"busy", 2, 90, b""), (4, 4, b"idler", 2, 1, b"")])
    off_cpu = _stacks(
        "offcpu",
        [
            (4, 4, b"idler", 3, 9 * SECOND, b"S"),
            (4, 4, b"idler", 1, SECOND // 10, b"D"),
            (3, 3, b"jbd2", 1, SECOND // 200, b"D"),
        ],
    )
    waits = np.array(
        [(80_000_000, 1, b"late", 6, 60_000_000, b"hog", 8), (900_000_000, 0, b"late", 6, 9_000_000, b"other", 9)],
        [("wait_ns", "u8"), ("waited_cpu", "u4"), ("comm", "S16"), ("pid", "u4"), ("holder_ns", "u8"),
         ("holder_comm", "S16"), ("holder_pid", "u4")],
    )  # fmt: skip
    alert = replace(_by("idler[4]"), began_ns=SECOND // 2)
    before = _window("runqueue", "worst", 0, 0.5, np.repeat(waits[:1], 2))
    before.rows["wait_ns"] *= 9
    windows = [*on_cpu, *off_cpu, before, _window("runqueue", "worst", 0, 1, waits)]
    assert _strongest(windows, alert) == (
        "idler[4] blocked (state D) for 100 ms, most in read_it",
        "idler[4] on CPU in 1 of 91 samples (1.1 %), most in compute",
        "hog[8] had CPU 1 for 75 % of the 80 ms that late[6] waited for it",
        "busy[5] on CPU in 90 of 91 samples (99 %), most in compute",
    )


def test_the_minute_before_is_kept_as_frames_in_bounded_memory():
    windows = [_window("softirq", "run", 0, 1, np.arange(3, dtype="u8").view([("n", "u8")]))]
    frame = encoded(windows)
    ring = Ring(most_bytes=3 * len(frame))
    for second in range(5):
        ring.add(second * SECOND, frame)
    assert ring.size == 3 * len(frame)
    ring.forget_before(3 * SECOND)
    with open(ring.written(), "rb") as file:
        frames = [*iter(lambda: read_frame(file.read), None)]
    assert len(frames) == 2 and FrameDecoder().windows(frames[0])[0].rows["n"].tolist() == [0, 1, 2]


def test_the_folder_is_ours_alone_and_keeps_the_latest(tmp_path: Path):
    path = tmp_path / "a" / "closeups"
    folder.prepare(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    (path / ".20261130T162042Z-x-00000000.fsk").touch()
    (path / "mine.txt").touch()
    folder.prepare(str(path))
    for minute in range(10, 14):
        for ending in ("fsk", "html"):
            folder.put(str(path), f"20261130T16{minute}42Z-stuck-00000000.{ending}", b"x" * 100)
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in path.glob("*.html"))
    folder.prune(str(path), most=4)
    assert sorted(file.name for file in path.glob("*.fsk"))[0].startswith("20261130T1611")
    folder.prune(str(path), most_bytes=250)
    assert sorted(file.name for file in path.iterdir()) == [
        "20261130T161342Z-stuck-00000000.fsk", "20261130T161342Z-stuck-00000000.html", "mine.txt",
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["mode", "link", "file"])
def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, how: str):
    path = tmp_path / "closeups"
    if how == "mode":
        path.mkdir()
        path.chmod(0o755)  # whatever the umask
    elif how == "link":
        path.symlink_to(tmp_path)
    else:
        path.touch()
    with pytest.raises(OutputError) as refused:
        folder.prepare(str(path))
    assert (f"chmod 700 {path}, or" in str(refused.value.hint)) == (how == "mode")


def test_files_are_named_by_what_can_not_lead_elsewhere():
    name = folder.name_of(replace(_page(), rule="../../etc/X\n", id="../../../../zz"))
    assert os.path.basename(name) == name and name.isascii() and "\n" not in name and ".." not in name


def test_an_order_is_read_as_it_was_given_and_nothing_else_is_one():
    order = Order(_page(), 5, SECOND, ("oncpu",), 7)
    assert Order.read(json.dumps(order.record()).encode()) == order
    for other in (b"", b"{", b"[]", b'{"end": true}', b'{"alert": {}}'):
        assert Order.read(other) is None
