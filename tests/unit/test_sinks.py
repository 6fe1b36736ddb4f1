"""Direct sinks and what all sinks share: how they are named, who never waits, what a hostile name can do."""

from __future__ import annotations

import io
import json
import os
import pty
import socket
import struct
import threading
import time

import pytest
from unit.sink_samples import HOSTILE, SECOND, hostile_alert, sample_alert

from tracer.alerts.alert import Severity, State
from tracer.alerts.engine import Identity
from tracer.alerts.lines import began_unix_ns, json_line, people_lines
from tracer.alerts.record import alert_from
from tracer.errors import ForeshockError, OutputError, UsageError
from tracer.sinks import Courier, DirectSink, Refused, Repeating, open_sink
from tracer.sinks.descriptors import Outlet
from tracer.sinks.journald import MESSAGE_ID, Journal
from tracer.sinks.kernel_log import KernelLog
from tracer.sinks.text import JsonFile, JsonLines, Terminal, open_json


def until(true, seconds=5.0):
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.01)


# What is written


def test_two_lines_say_when_where_what_how_long_who_and_what_next():
    first, second = people_lines(sample_alert())
    assert " UTC  PAGE  cu39: CPU 3 has been in the kernel for 5 s; panic in ≤ 16 s" in first
    assert second == (
        "    by kworker/3:1[812], softirq TIMER in spin < run_timer_softirq < handle_softirqs < irq_exit_rcu < …"
        " [badmod]; next: move jobs away; see what badmod does; missed: ring 2"
    )


def test_resolved_says_so_and_counts_nothing_down():
    first, second = people_lines(sample_alert(state=State.RESOLVED, since_ns=95 * SECOND, at_ns=100 * SECOND))
    assert "RESOLVED  cu39: CPU 3" in first and "panic" not in first
    assert "it began 5 s ago" in second and "next" not in second


def test_colour_is_around_the_severity_only():
    plain, coloured = people_lines(sample_alert()), people_lines(sample_alert(), color=True)
    assert coloured[0].replace("\x1b[1;31m", "").replace("\x1b[0m", "") == plain[0]
    assert "\x1b" not in plain[0]


def test_hostile_names_stay_inside_their_line():
    assert "\x1b" in HOSTILE
    lines = people_lines(hostile_alert())
    assert len(lines) == 2 and all(line.isprintable() for line in lines)
    line = json_line(hostile_alert())
    assert line.isascii() and line.isprintable()
    assert alert_from(json.loads(line)).condition.culprit.task.startswith("\x1b[2J")


def test_when_it_began_is_told_by_the_nodes_wall_clock():
    alert = sample_alert(since_ns=95 * SECOND, at_ns=100 * SECOND)
    assert began_unix_ns(alert) == alert.unix_ns - 5 * SECOND


# Specifications


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("journal", "did you mean 'journald'"),
        ("webhok:http://x", "did you mean 'webhook'"),
        ("zzz", "no sink is called 'zzz'"),
        ("json", "where to"),
        ("terminal:x", "takes nothing after it"),
        ("webhook:ftp://x/", "is no http"),
        ("webhook:http://", "is no http"),
        ("webhook:http://a b/", "is no http"),
        ("webhook:http://h:99999/", "is no http"),
        ("webhook:http://u:secret@h/", "must not hold a password"),
        ("webhook:https://h/#token=x", "no option 'token'"),
        ("webhook:https://h/#token-file=/nonexistent", "can't be read"),
        ("webhook:https://h/#ca-file=/nonexistent", "no certificate file"),
        ("stream:host", "is no HOST:PORT"),
        ("stream:host:0", "is no HOST:PORT"),
        ("stream:host:٣", "is no HOST:PORT"),
        ("alertmanager:", "where to"),
    ],
)
def test_a_wrong_specification_is_one_line(spec, said):
    with pytest.raises(UsageError) as caught:
        open_sink(spec, Identity("n", "b", 0))
    assert said in caught.value.message and "\n" not in caught.value.message
    assert "secret" not in caught.value.message


def test_what_can_not_be_opened_is_an_output_error(tmp_path):
    with pytest.raises(OutputError):
        open_sink(f"json:{tmp_path}/none/alerts")
    with pytest.raises(OutputError):
        Journal(str(tmp_path / "none"))
    with pytest.raises(OutputError):
        KernelLog.pmsg(str(tmp_path / "none"))


def test_which_sinks_are_direct_and_which_repeat(tmp_path):
    read, write = os.pipe()
    assert isinstance(JsonLines("x", write), DirectSink)
    os.close(read)
    assert not isinstance(open_json(str(tmp_path / "alerts")), DirectSink)
    assert not isinstance(open_sink("webhook:http://127.0.0.1:9/"), DirectSink)
    assert isinstance(open_sink("alertmanager:http://127.0.0.1:9/"), Repeating)


# Descriptors


def test_json_lines_to_a_file_are_appended_and_private(tmp_path):
    path = tmp_path / "alerts.jsonl"
    path.write_text("before\n")
    sink = open_json(str(path))
    assert type(sink) is JsonFile
    sink.send(sample_alert(shadow=True))
    sink.close()
    before, line = path.read_text().splitlines()
    assert before == "before" and json.loads(line)["shadow"] is True
    open_json(str(tmp_path / "new")).close()
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0


def test_a_fifo_without_a_reader_holds_up_nobody(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    sink = open_json(str(path))
    assert isinstance(sink, JsonLines)
    assert sink.send_now(sample_alert())
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert json.loads(os.read(reader, 1 << 16))["node"] == "cu39"


def test_a_full_pipe_takes_whole_lines_or_none():
    read, write = os.pipe()
    os.set_blocking(write, False)
    sink = JsonLines("pipe", write)
    taken = 0
    while sink.send_now(sample_alert()):
        taken += 1
    began = time.monotonic()
    assert not sink.send_now(sample_alert())
    assert time.monotonic() - began < 0.05
    data = os.read(read, 1 << 20)
    assert sink.send_now(sample_alert(node="later"))
    data += os.read(read, 1 << 20)
    nodes = [json.loads(line)["node"] for line in data.decode().splitlines()]
    assert nodes == ["cu39"] * taken + ["later"]


def test_waiting_for_a_reader_is_bounded(monkeypatch):
    read, write = os.pipe()
    outlet = Outlet(write)
    while outlet.write_now(b"x" * 4096):
        pass
    with pytest.raises(TimeoutError):
        outlet.write(b"y", 0.1)
    os.close(read)
    with pytest.raises(BrokenPipeError):
        outlet.write(b"y", 5)
    assert outlet.write_now(b"y") is False


def test_standard_output_of_others_stays_blocking():
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        sink = Terminal(stream)
        assert os.get_blocking(write) and not os.get_blocking(sink.fileno())
    assert sink.send_now(sample_alert())
    text = os.read(read, 1 << 16).decode()
    assert text.count("\n") == 2 and "\x1b" not in text
    assert sink.send_now(sample_alert(shadow=True))
    os.set_blocking(read, False)
    with pytest.raises(BlockingIOError):
        os.read(read, 1)


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_on_a_terminal_unless_the_user_has_none(monkeypatch, no_color, coloured):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)
    program, terminal = pty.openpty()
    with os.fdopen(terminal, "w", encoding="utf-8") as stream:
        sink = Terminal(stream)
        assert sink.send_now(sample_alert())
        assert ("\x1b[1;31mPAGE" in os.read(program, 1 << 16).decode()) is coloured
        sink.close()


def test_a_terminal_without_unicode_gets_ascii():
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="ascii") as stream:
        sink = Terminal(stream)
        assert sink.send_now(sample_alert())
        assert b"panic in <= 16 s" in os.read(read, 1 << 16)
        sink.close()


# The journal


def fields(datagram: bytes) -> dict[str, str]:
    """Read the native protocol, as systemd-journald does."""
    found, stream = {}, io.BytesIO(datagram)
    while line := stream.readline():
        name, equals, value = line.rstrip(b"\n").partition(b"=")
        if not equals:
            (size,) = struct.unpack("<Q", stream.read(8))
            value = stream.read(size)
            assert stream.read(1) == b"\n"
        assert name.replace(b"_", b"").isalnum() and name.isupper()
        found[name.decode()] = value.decode()
    return found


class FakeJournal:
    """A socket as journald's; stopped and started again it is another one by the same name."""

    def __init__(self, path):
        self.path, self.opened = str(path), []
        self.start()

    def start(self):
        self.reader = self.keep(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.reader.bind(self.path)
        self.reader.settimeout(2)

    def stop(self):
        self.reader.close()
        os.unlink(self.path)

    def keep(self, opened):
        self.opened.append(opened)
        return opened

    def sink(self):
        return self.keep(Journal(self.path))

    def fields(self):
        return fields(self.reader.recv(1 << 20))


@pytest.fixture
def journal(socket_folder):
    journal = FakeJournal(socket_folder / "socket")
    yield journal
    for opened in journal.opened:
        opened.close()


def test_the_journal_gets_one_datagram_with_fields(journal):
    assert journal.sink().send_now(sample_alert())
    found = journal.fields()
    assert found["PRIORITY"] == "2" and found["MESSAGE_ID"] == MESSAGE_ID and len(MESSAGE_ID) == 32
    assert "panic in ≤ 16 s" in found["MESSAGE"]
    assert found["FORESHOCK_NODE"] == "cu39" and found["FORESHOCK_STALLED_S"] == "5.0"
    assert found["FORESHOCK_STACK"].splitlines()[1] == "run_timer_softirq"


def test_a_hostile_name_adds_no_field_to_the_journal(journal):
    sink = journal.sink()
    sink.send(sample_alert(node="x\nPRIORITY=7\nEVIL=1", task="a\nMESSAGE=b"))
    found = journal.fields()
    assert "EVIL" not in found and found["PRIORITY"] == "2"
    assert found["FORESHOCK_NODE"] == "x\nPRIORITY=7\nEVIL=1"
    sink.send(hostile_alert())
    assert journal.fields()["MESSAGE"].isprintable()


def test_a_restarted_journal_is_found_again(journal):
    sink = journal.sink()
    journal.stop()
    assert not sink.send_now(sample_alert())
    with pytest.raises(OutputError):
        sink.send(sample_alert())
    journal.start()
    assert sink.send_now(sample_alert())
    assert journal.fields()["FORESHOCK_RULE"] == "soft-lockup"


def test_a_journal_that_does_not_read_holds_up_nobody(journal):
    sink = journal.sink()
    began = time.monotonic()
    assert any(not sink.send_now(sample_alert()) for _ in range(5000))
    assert time.monotonic() - began < 5


# The kernel's log


def test_the_kernel_log_is_one_short_line_and_rate_limited(tmp_path):
    path = tmp_path / "kmsg"
    path.touch()
    sink = KernelLog.kmsg(str(path))
    for _ in range(5):
        sink.send(hostile_alert())
    sink.send(sample_alert(severity=Severity.WARNING))
    sink.send(sample_alert(shadow=True))
    first, second = path.read_bytes().splitlines()
    assert first.startswith(b"<13>foreshock: ") and len(first) < 1024 and first.isascii()
    assert b"WARNING" in second and second.endswith(b"(4 alerts before it not written)")


# Couriers


class Fake:
    name = "fake"

    def __init__(self, error=None):
        self.error, self.got, self.closed = error, [], False
        self.gate = threading.Event()
        self.gate.set()

    def send(self, alert):
        self.gate.wait()
        if self.error:
            raise self.error
        self.got.append(alert)

    def close(self):
        self.closed = True


def test_a_courier_delivers_in_order_and_closes_its_sink():
    sink = Fake()
    courier = Courier(sink)
    for number in range(10):
        courier.send(sample_alert(sequence=number))
    courier.close()
    assert [alert.sequence for alert in sink.got] == list(range(10)) and sink.closed


def test_a_stuck_sink_costs_the_sender_nothing_and_the_oldest_give_way():
    sink = Fake()
    sink.gate.clear()
    courier = Courier(sink, most=8)
    began = time.monotonic()
    for number in range(1000):
        courier.send(sample_alert(sequence=number))
    assert time.monotonic() - began < 1
    sink.gate.set()
    courier.close()
    assert courier.dropped >= 1000 - 8 - 1
    assert [alert.sequence for alert in sink.got][-8:] == list(range(992, 1000))
    assert len(sink.got) + courier.dropped == 1000


def test_failures_are_reported_once_and_so_is_their_end():
    sink, said = Fake(OutputError("it is down.", hint="start it")), []
    courier = Courier(sink, said.append, first_pause=0.01)
    for number in range(3):
        courier.send(sample_alert(sequence=number))
    until(lambda: said)
    time.sleep(0.1)
    sink.error = None
    courier.close()
    assert [alert.sequence for alert in sink.got] == [0, 1, 2]
    assert said[0] == "fake: it is down (start it); alerts wait and are tried again"
    assert len(said) == 2 and said[1].startswith("fake: works again after ")


def test_trying_again_ends():
    sink = Fake(OutputError("it is down."))
    courier = Courier(sink, lambda line: None, first_pause=0.01, patience=0.1)
    courier.send(sample_alert())
    until(lambda: courier.failed == 1, 2)
    courier.close()


def test_what_is_refused_for_good_is_not_tried_again():
    sink = Fake(Refused("no."))
    courier = Courier(sink, lambda line: None, first_pause=60)
    courier.send(sample_alert())
    until(lambda: courier.failed == 1, 2)
    courier.close()


def test_closing_does_not_wait_for_a_dead_sink():
    sink = Fake(OutputError("it is down."))
    courier = Courier(sink, lambda line: None, first_pause=30)
    courier.send(sample_alert())
    began = time.monotonic()
    courier.close(0.2)
    assert time.monotonic() - began < 1
    until(lambda: sink.closed)


def test_every_error_of_a_sink_is_one_that_a_courier_knows():
    assert issubclass(Refused, OutputError) and issubclass(OutputError, ForeshockError)
