"""The agent's smaller parts: wire, service, lookout, orders, what it says at its start."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from unit.agent_samples import SECOND, FakeSink, an_alert

from tracer.agent import orders, startup
from tracer.agent.crew import Post
from tracer.agent.lookout import HISTORY_NS, Lookout, settings_now
from tracer.agent.orders import Orders
from tracer.agent.service import Service
from tracer.agent.wire import Wire
from tracer.alerts.rule import Rule, View
from tracer.errors import UsageError
from tracer.sinks import DirectSink
from tracer.window import Window


@pytest.fixture
def wires() -> Iterator[tuple[Wire, Wire]]:
    pair = Wire.pair()
    yield pair
    for end in pair:
        end.close()


def test_messages_cross_the_wire_whole(wires):
    ours, theirs = wires
    assert theirs.say("ready", ["SCHED_FIFO: no"]) and theirs.send_now(an_alert(stack=("spin",)))
    assert list(ours.received()) == [("ready", ["SCHED_FIFO: no"]), ("alert", an_alert(stack=("spin",)))]
    assert list(ours.received()) == []
    theirs.close()
    with pytest.raises(EOFError):
        list(ours.received())


def test_a_goodbye_is_heard_although_the_agent_left_something_unread(wires):
    ours, theirs = wires
    assert theirs.send_now(an_alert()) and ours.say("bye")
    ours.close()
    heard = []
    with pytest.raises(EOFError):
        for kind, _ in theirs.received():
            heard.append(kind)
    assert heard == ["bye"]


def test_a_wire_that_nobody_reads_keeps_nobody_waiting(wires):
    ours, theirs = wires
    sent = [theirs.send_now(an_alert(stack=("x" * 1000,) * 100)) for _ in range(100)]
    assert not all(sent)
    assert len(list(ours.received())) == sum(sent)
    assert isinstance(theirs, DirectSink)


@pytest.mark.parametrize("message", [b"\xc1", b"", b"\x93\x01\x02\x03", b"\x92\xa5alert\xc0", b"\x05"])
def test_what_is_no_message_is_passed_over(wires, message):
    ours, theirs = wires
    if message:
        theirs._socket.send(message)
    theirs.say("ready", [])
    assert list(ours.received()) == [("ready", [])]


def test_systemd_is_told(monkeypatch, socket_folder):
    path = str(socket_folder / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        service = Service()
        assert "NOTIFY_SOCKET" not in os.environ, "children must not speak for us"
        service.say(READY="1", STATUS="11 rules")
        assert manager.recv(100) == b"READY=1\nSTATUS=11 rules"
    service.say(WATCHDOG="1")  # nobody listens any more
    service.close()


@pytest.mark.parametrize("path", ["", "/none/notify", "@foreshock-nobody"])
def test_without_systemd_nothing_happens(monkeypatch, path):
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    service = Service()
    service.say(READY="1")
    service.close()


def _window(table: tuple[str, str], end_s: float, rows: np.ndarray) -> Window:
    return Window(*table, int((end_s - 1) * SECOND), int(end_s * SECOND), rows)


def test_settings_stay_and_history_grows_to_an_end():
    table, other, settings = ("memory", "use"), ("memory", "other"), ("detectors", "settings")
    rule = Rule("grows", "", "", "", lambda view: (), (table,), history=(table,))
    lookout = Lookout([rule], 60 * SECOND, lambda address: ("", ""))
    found = np.array([(b"kernel.panic", b"10")], dtype=[("name", "S48"), ("value", "S208")])
    rows = np.zeros(1, dtype=[("free", "u8")])
    view = lookout.view([_window(table, 1, rows), _window(other, 1, rows), _window(settings, 1, found)])
    assert view.number("kernel.panic", 0) == 10 and view.now_ns == SECOND
    for second in range(2, 40):
        view = lookout.view([_window(table, second, rows), _window(settings, second, found[:0])])
    assert view.settings == {"kernel.panic": "10"}
    history = view.history[table]
    assert len(history) == HISTORY_NS // (60 * SECOND) and history[-1].end_ns == 39 * SECOND
    assert set(view.history) == {table} and other not in view.windows


RULE = Rule("stuck", "", "", "", lambda view: (), ())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Orders(shadow=("nope",)), "no such rule"),
        (Orders(stream="nowhere"), "HOST:PORT"),
        (Orders(stream="h:1", token_file="/none/token"), "/none/token"),
        (Orders(token_file="/none"), "--token-file"),
        (Orders(sinks=("stream:h:1", "stream:i:1")), "one stream"),
        (Orders(sinks=("stream:h:1",), stream="h:1"), "one stream"),
        (Orders(sinks=("stream:nowhere",)), "HOST:PORT"),
        (Orders(blackbox=("/a", "/a")), "--blackbox"),
        (Orders(blackbox=("/a", "/b", "/c")), "--blackbox"),
        (Orders(blackbox=("/a",), sinks=("json:/a",)), "two things"),
        (Orders(blackbox=("/a",), state=Path("/b/../a")), "two things"),
    ],
)
def test_orders_that_can_not_be_carried_out(given, said):
    with pytest.raises(UsageError, match=said) as caught:
        orders.check(given, {"stuck": RULE})
    assert caught.value.hint


def test_a_stream_among_the_sinks_is_the_stream():
    given = Orders(sinks=("stream:h:1#tls=1", "terminal"))
    assert given.stream_spec == "stream:h:1#tls=1" and given.sink_specs == ("terminal",)


def test_what_blocks_is_told_from_what_does_not(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    direct, slow = orders.open_sinks([f"json:{tmp_path}/file", f"json:{tmp_path}/fifo"])
    assert [sink.name for sink in direct] == [f"json {tmp_path}/fifo"]
    assert [sink.name for sink in slow] == [f"json {tmp_path}/file"]
    for sink in (*direct, *slow):
        sink.close()


def test_a_stream_has_its_token():
    given = Orders(stream="[::1]:9750#tls=1", token_file="/etc/a b")
    assert given.stream_spec == "stream:[::1]:9750#tls=1&token-file=%2Fetc%2Fa+b"
    assert Orders().stream_spec == ""


def test_without_a_sink_there_is_one(monkeypatch):
    assert Orders(foreground=True).sink_specs == ("terminal",)
    monkeypatch.setattr(orders, "SOCKET", "/none")
    assert Orders().sink_specs == ("json:-",)
    monkeypatch.setattr(orders, "SOCKET", "/")
    assert Orders().sink_specs == ("journald",)
    assert Orders(sinks=("pmsg",)).sink_specs == ("pmsg",)


def test_sentinels_say_what_they_lack():
    posts = [
        Post(0, 2, ready=True),
        Post(1, 5, ready=True, lacks=("mlockall: Cannot allocate memory", "SCHED_FIFO: Operation not permitted")),
        Post(2, 7),
    ]
    lines = startup.sentinel_lines(posts)
    assert lines[0] == "0 on CPU 2: SCHED_FIFO 90, memory locked"
    assert "ordinary priority, memory not locked; degraded, alerts all the same: mlockall: Cannot" in lines[1]
    assert "not said" in lines[2]


def test_one_cpu_is_told_what_that_means():
    lines = startup.sentinel_lines([Post(0, 0, ready=True)])
    assert "one usable CPU" in lines[-1] and "stream" in lines[-1] and "black box" in lines[-1]


def test_detectors_are_sorted_by_what_they_would_do():
    settings = {
        "kernel.soft_watchdog": "1", "kernel.watchdog_thresh": "10", "kernel.softlockup_panic": "1",
        "kernel.nmi_watchdog": "0", "kernel.hung_task_timeout_secs": "120", "vm.panic_on_oom": "1",
    }  # fmt: skip
    panic, log, off = startup.detector_lines(View(0, {}, settings))
    assert panic.startswith("would panic: soft lockup detector after ≤ 24 s") and panic.endswith("out of memory")
    assert log.startswith("would only log: hung task detector")
    assert "hard lockup detector (kernel.nmi_watchdog=0)" in off


def test_the_settings_are_there_before_the_first_interval_and_stay():
    lookout = Lookout([RULE], SECOND, lambda address: ("", ""), {"kernel.watchdog_thresh": "10"})
    assert lookout.view([]).settings == lookout.settings == {"kernel.watchdog_thresh": "10"}


def test_a_history_is_bounded_in_bytes():
    rule = Rule("big", "", "", "", lambda view: (), (), history=(("a", "b"),))
    lookout = Lookout([rule], SECOND, lambda address: ("", ""))
    for second in range(100):
        view = lookout.view([Window("a", "b", second, second + 1, np.zeros(1 << 17, "u8"))])
    assert [window.start_ns for window in view.history["a", "b"]] == [96, 97, 98, 99]


def test_facts_stand_in_a_column_and_are_printable():
    assert startup.aligned([("node", "a\x1b[2J"), ("rules", "1"), ("rules", "2")], 80) == [
        "node   a\\x1b[2J", "rules  1", "       2",
    ]  # fmt: skip


def test_long_facts_go_on_in_their_column():
    assert startup.aligned([("node", "words that are long, and 16 s"), ("alerts to", "x")], 24) == [
        "node       words that",
        "           are long, and",
        "           16 s",
        "alerts to  x",
    ]


@pytest.fixture
def unit(checkout: Path) -> Path:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    return checkout / "deploy" / "foreshock-agent.service"


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, check=False)


def test_systemd_understands_all_of_the_unit(unit: Path):
    done = analyze("verify", str(unit))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert analyze("security", "--offline=true", "--threshold=50", str(unit)).returncode == 0


def test_the_unit_takes_nothing_away_that_the_agent_needs(unit: Path):
    said = unit.read_text()
    for line in ("Type=notify", "KillMode=mixed", "Restart=always", "LimitMEMLOCK=infinity", "ExecStart="):
        assert line in said
    # /dev/kmsg, and /proc/kallsyms.
    taken = ("ProtectKernelLogs=", "ProtectClock=", "PrivateDevices=", "ProtectKernelTunables=", "ProcSubset=")
    assert not [line for line in said.splitlines() if line.startswith(taken)]
    assert "bpf perf_event_open" in said


def test_fakes_are_direct_sinks():
    assert isinstance(FakeSink(), DirectSink)


def test_the_kernels_settings_are_there_before_the_first_interval():
    assert int(settings_now()["kernel.panic"]) >= -1
