"""The stream, end to end: a sender and a real receiver on loopback, and what becomes of both when one is missing."""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import threading
import time

import pytest
from unit.certificates import make_certificate
from unit.fleet_samples import SECOND, Served, demo, served
from unit.sink_samples import sample_alert

from tracer.alerts.engine import Identity
from tracer.errors import UsageError
from tracer.fleet.tls import server_context
from tracer.recording.frames import PREAMBLE, Kind, read_frame
from tracer.recording.greeting import Hello, answer, challenge, new_nonce
from tracer.sinks.opening import host_and_port
from tracer.sinks.stream import Stream

IDENTITY = Identity("cu39", "b007", 0)


def until(true, seconds=8.0):
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.01)


@contextlib.contextmanager
def streaming(port, *, identity=IDENTITY, said=None, host="127.0.0.1", **options):
    options = {name.replace("_", "-"): str(value) for name, value in options.items()}
    stream = Stream(host, port, identity, SECOND, options, (said if said is not None else []).append)
    try:
        yield stream
    finally:
        stream.close()


def beating(stream, true, seconds=8.0):
    def try_once():
        stream.beat()
        return true()

    until(try_once, seconds)


def test_alerts_windows_and_goodbye_arrive():
    with served(Served()) as there:
        with streaming(there.port) as stream:
            stream.introduce(demo().header)
            beating(stream, lambda: stream.fileno() >= 0)
            assert all(stream.send_windows(windows) for windows in demo().intervals)
            assert stream.send_now(sample_alert())
            until(lambda: there.alerts)
        node = there.receiver.roster.nodes["cu39"]
        until(lambda: not node.expected)
    assert there.alerts[0].id == sample_alert().id and there.said == []
    assert [kept.interval.windows()[0].start_ns for kept in node.kept] == [w[0].start_ns for w in demo().intervals]


def test_functions_that_go_on_for_ever_are_cut():
    with served(Served()) as there, streaming(there.port) as stream:
        beating(stream, lambda: stream.fileno() >= 0)
        stream.send_now(sample_alert(stack=("x" * 4000,) * 128))
        until(lambda: there.alerts)
    assert there.alerts[0].condition.culprit.stack == ("x" * 200,) * 128 and there.said == []


def test_an_alert_arrives_within_milliseconds():
    with served(Served()) as there, streaming(there.port) as stream:
        beating(stream, lambda: stream.fileno() >= 0)
        took = []
        for number in range(20):
            began = time.monotonic()
            stream.send_now(sample_alert(name=str(number)))
            until(lambda number=number: len(there.alerts) > number)
            took.append(time.monotonic() - began)
    assert sorted(took)[10] < 0.05


def test_without_a_receiver_nothing_waits_and_alerts_are_kept_for_it():
    there = Served()
    with socket.create_server(("127.0.0.1", 0)) as free:
        there.port = free.getsockname()[1]
    said = []
    with streaming(there.port, said=said) as stream:
        began = time.monotonic()
        assert not stream.send_now(sample_alert())
        assert not stream.send_windows(demo().intervals[0])
        assert time.monotonic() - began < 0.1 and stream.dropped == 1
        until(lambda: said)
        with served(there):
            beating(stream, lambda: there.alerts)
            until(lambda: len(said) == 2)
    assert "Connection refused" in said[0] and said[1].endswith("is up")


def test_each_reason_why_there_is_no_stream_is_said_once():
    there, said = Served(token="right"), []
    with socket.create_server(("127.0.0.1", 0)) as free:
        there.port = free.getsockname()[1]
    with streaming(there.port, said=said):
        until(lambda: said)
        with served(there):
            until(lambda: len(said) == 2)
            until(lambda: len(there.said) >= 3)
    assert "Connection refused" in said[0] and "its token is wrong" in said[1] and len(said) == 2


def test_after_a_restart_of_the_receiver_the_last_alerts_are_sent_again():
    there, again = Served(), Served()
    with contextlib.ExitStack() as first:
        first.enter_context(served(there))
        with streaming(there.port) as stream:
            stream.introduce(demo().header)
            beating(stream, lambda: stream.fileno() >= 0)
            stream.send_now(sample_alert())
            stream.send_windows(demo().intervals[0])
            until(lambda: there.alerts)
            first.close()
            again.port = there.port
            with served(again):
                beating(stream, lambda: again.alerts)
                assert stream.send_windows(demo().intervals[1])
                until(lambda: again.receiver.roster.nodes["cu39"].kept)
    assert again.alerts[0].id == there.alerts[0].id and again.said == []


def test_a_broken_connection_is_made_again_and_nothing_is_told_twice():
    with served(Served()) as there, streaming(there.port) as stream:
        beating(stream, lambda: stream.fileno() >= 0)
        stream.send_now(sample_alert())
        until(lambda: there.alerts)
        frames = there.receiver.frames
        stream._socket.shutdown(socket.SHUT_RDWR)
        beating(stream, lambda: there.receiver.frames >= frames + 3)
        assert len(there.alerts) == 1


def test_a_receiver_that_does_not_read_costs_memory_and_time_that_are_bounded():
    def reply(listening):
        connection, _ = listening.accept()
        connection.sendall(challenge(new_nonce()))
        connection.recv(4096)
        connection.sendall(answer())
        return connection

    with socket.create_server(("127.0.0.1", 0)) as listening, streaming(listening.getsockname()[1]) as stream:
        connection = reply(listening)
        until(lambda: stream._connected())
        began, windows = time.monotonic(), demo().intervals[0]
        for _ in range(3000):
            stream.send_windows(windows)
        assert time.monotonic() - began < 20
        assert stream.dropped > 0 and len(stream._pending) < 1 << 20
        for number in range(500):
            stream.send_now(sample_alert(name=str(number)))
        assert len(stream._waiting) <= 64 + 16
        connection.close()


def test_one_that_ends_while_it_greets_says_goodbye_and_else_greets_no_more(monkeypatch):
    monkeypatch.setattr("tracer.sinks.stream._GOODBYE_SECONDS", 20.0)

    def greeted():
        return Stream("127.0.0.1", listening.getsockname()[1], IDENTITY, SECOND, {}), listening.accept()[0]

    with socket.create_server(("127.0.0.1", 0)) as listening:
        stream, connection = greeted()
        with connection:
            connection.sendall(challenge(new_nonce()))
            assert connection.recv(4096)
            closing = threading.Thread(target=stream.close)
            closing.start()
            until(stream._connector._closing.is_set)
            connection.sendall(answer())
            with connection.makefile("rb") as read:
                assert read_frame(read.read).kind == Kind.END
            closing.join(20)
        stream, connection = greeted()
        with connection:
            stream.close()
            connection.sendall(challenge(new_nonce()))
            assert connection.recv(4096) == b""


def test_a_wrong_token_is_said_on_both_sides(tmp_path):
    (tmp_path / "right").write_text("right")
    (tmp_path / "wrong").write_text("wrong")
    said, none = [], []
    with served(Served(token="right")) as there:
        with streaming(there.port, token_file=tmp_path / "right") as stream:
            beating(stream, lambda: stream.fileno() >= 0)
        with streaming(there.port, said=said, token_file=tmp_path / "wrong"), streaming(there.port, said=none):
            until(lambda: said and none)
    assert "its token is wrong, or it has none" in said[0] and "its token is wrong" in none[0]
    assert any("not let in: its token is wrong" in line for line in there.said)
    assert list(there.receiver.roster.nodes) == ["cu39"]


def test_the_token_does_not_travel():
    nonce = new_nonce()
    said = Hello("n", "b", "agent", SECOND).packed(nonce, "s3cret")
    frame = read_frame(io.BytesIO(said[len(PREAMBLE) :]).read)
    assert b"proof" in frame.payload and b"s3cret" not in frame.payload


@pytest.mark.parametrize(
    "garbage", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x89FSK\r\n\x1a\n\x01\x00L\x00" + b"\xff" * 64]
)
def test_something_else_that_listens_is_one_line(garbage):
    said = []
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        streaming(listening.getsockname()[1], said=said) as stream,
    ):
        connection, _ = listening.accept()
        connection.sendall(garbage)
        connection.close()
        until(lambda: said)
        assert not stream.send_now(sample_alert())
    assert len(said) == 1 and said[0].startswith("no stream to 127.0.0.1:")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    for name in ("server", "other"):
        make_certificate(folder, name)
    return folder


def test_over_tls(certificates):
    cert, key = certificates / "server.pem", certificates / "server.key"
    with served(Served(tls=server_context(str(cert), str(key), None))) as there:
        with streaming(there.port, tls_ca=cert) as stream:
            stream.introduce(demo().header)
            beating(stream, lambda: stream.fileno() >= 0)
            assert all(stream.send_windows(windows) for windows in demo().intervals)
            stream.send_now(sample_alert())
            beating(stream, lambda: there.alerts)
            node = there.receiver.roster.nodes["cu39"]
        until(lambda: not node.expected)
        assert len(node.kept) == len(demo().intervals) and there.said == []


def test_tls_that_does_not_fit_is_said_on_both_sides(certificates):
    cert, key = certificates / "server.pem", certificates / "server.key"
    plain, other, none = [], [], []
    with served(Served(tls=server_context(str(cert), str(key), str(certificates / "other.pem")))) as there:
        with (
            streaming(there.port, said=plain),
            streaming(there.port, said=other, tls_ca=certificates / "other.pem"),
            streaming(there.port, said=none, tls_ca=cert),
        ):
            until(lambda: plain and other and none, 15)
        assert there.receiver.roster.nodes == {}
        assert any("no TLS that is accepted" in line for line in there.said)
        with streaming(
            there.port, tls_ca=cert, tls_cert=certificates / "other.pem", tls_key=certificates / "other.key"
        ) as stream:
            beating(stream, lambda: there.receiver.roster.nodes)
    assert "ertificate" in other[0]


def test_tls_options_that_can_not_be_are_usage_errors(tmp_path):
    with pytest.raises(UsageError):
        Stream("127.0.0.1", 9, IDENTITY, SECOND, {"tls-ca": str(tmp_path / "none")})
    with pytest.raises(UsageError):
        server_context(str(tmp_path / "none"), None, None)
    with pytest.raises(UsageError):
        server_context(None, str(tmp_path / "key"), None)
    assert ssl.HAS_TLSv1_3


def test_addresses():
    assert host_and_port("[::1]:9750") == ("::1", 9750)
    assert host_and_port("collector.example:1") == ("collector.example", 1)
