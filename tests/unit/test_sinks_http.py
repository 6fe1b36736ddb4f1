"""Webhook and Alertmanager against servers that take it, refuse it, redirect, are slow, dead, or speak garbage."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import socket
import ssl
import threading
import time
from datetime import datetime, timedelta

import pytest
from unit.certificates import make_certificate
from unit.sink_samples import SECOND, hostile_alert, sample_alert

import tracer.sinks.http
from tracer.alerts.alert import Severity, State
from tracer.alerts.record import alert_from
from tracer.errors import OutputError
from tracer.sinks import Courier, Refused, open_sink


class Server:
    """An HTTP server on loopback; ``answer`` is (status, headers, body) or a function of the handler."""

    def __init__(self, context=None):
        self.requests, self.answer = [], (200, {}, b"")
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers), json.loads(body)))
                if callable(outer.answer):
                    outer.answer(self)
                    return
                status, headers, text = outer.answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self):
                outer.requests.append(("GET", {}, None))

            def log_message(self, *args):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def bodies(self):
        return [body for _, _, body in self.requests]


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@contextlib.contextmanager
def raw_server(reply):
    """Serve with ``reply(connection)``, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, contextlib.suppress(OSError):
                        reply(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


# Webhook


def test_a_webhook_gets_the_alerts_record(server):
    open_sink(f"webhook:{server.url}/hook?team=hpc").send(sample_alert())
    ((path, headers, body),) = server.requests
    assert path == "/hook?team=hpc" and headers["Content-Type"] == "application/json"
    assert alert_from(body) == sample_alert().__class__(**{**sample_alert().__dict__, "unix_ns": body["unix_ns"]})
    assert "Authorization" not in headers


def test_the_token_comes_from_a_file(server, tmp_path):
    path = tmp_path / "token"
    path.write_text("s3cret\n")
    sink = open_sink(f"webhook:{server.url}/#token-file={path}")
    sink.send(sample_alert())
    assert server.requests[0][1]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in sink.name and "#" not in server.requests[0][0]


@pytest.mark.parametrize("text", ["", "\n", "two\nlines", "\x00", "ä"])
def test_a_file_that_is_no_token_is_said_so(tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(tracer.sinks.http.UsageError):
        open_sink(f"webhook:http://127.0.0.1:9/#token-file={path}")


def test_redirects_are_not_followed(server, tmp_path):
    other = Server()
    path = tmp_path / "token"
    path.write_text("s3cret")
    sink = open_sink(f"webhook:{server.url}/#token-file={path}")
    for status in (301, 302, 303, 307, 308):
        server.answer = (status, {"Location": f"{other.url}/stolen"}, b"")
        with pytest.raises(Refused, match="redirects are not followed"):
            sink.send(sample_alert())
    assert other.requests == []
    other.close()


@pytest.mark.parametrize(("status", "kind"), [(400, Refused), (401, Refused), (404, Refused), (429, OutputError)])
@pytest.mark.parametrize("text", [b"no", b"\x1b[2J\xff" * 100])
def test_an_answer_says_whether_trying_again_is_of_use(server, status, kind, text):
    server.answer = (status, {}, text)
    with pytest.raises(OutputError) as caught:
        open_sink(f"webhook:{server.url}").send(sample_alert())
    assert type(caught.value) is kind and str(status) in caught.value.message and len(caught.value.message) < 400


def test_a_server_error_is_tried_again_until_it_is_over(server):
    server.answer = (500, {}, b"")
    said = []
    courier = Courier(open_sink(f"webhook:{server.url}"), said.append, first_pause=0.05)
    courier.send(sample_alert())
    time.sleep(0.4)
    server.answer = (200, {}, b"")
    courier.close(5)
    assert courier.failed == 0 and len(server.requests) > 1
    assert len(said) == 2 and "500" in said[0] and "works again" in said[1]


def test_a_dead_server_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(OutputError, match="Connection refused"):
        open_sink(f"webhook:http://127.0.0.1:{port}").send(sample_alert())


GARBAGE = [
    b"",
    b"\x00\xff" * 500,
    b"HTTP/1.1 999999999999 x\r\n\r\n",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: zz\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"HTTP/1.1 200 " + b"x" * 70_000,
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500 + b"\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_an_output_error_or_taken_for_an_answer(garbage):
    def reply(connection):
        connection.recv(1 << 16)
        connection.sendall(garbage)

    with raw_server(reply) as url, contextlib.suppress(OutputError):
        open_sink(f"webhook:{url}").send(sample_alert())


def test_a_server_that_drips_is_given_up(monkeypatch):
    monkeypatch.setattr(tracer.sinks.http, "_WHOLE_SECONDS", 0.5)

    def reply(connection):
        for _ in range(100):
            connection.sendall(b"H")
            time.sleep(0.05)

    with raw_server(reply) as url:
        began = time.monotonic()
        with pytest.raises(OutputError):
            open_sink(f"webhook:{url}").send(sample_alert())
        assert time.monotonic() - began < 2


def test_a_server_that_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(tracer.sinks.http, "_STEP_SECONDS", 0.3)
    with raw_server(lambda connection: time.sleep(2)) as url, pytest.raises(OutputError, match="too long"):
        open_sink(f"webhook:{url}").send(sample_alert())


def test_certificates_are_checked(tmp_path):
    cert, key = make_certificate(tmp_path, "here")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = Server(context)
    with pytest.raises(OutputError, match="(?i)certificate"):
        open_sink(f"webhook:{server.url}").send(sample_alert())
    open_sink(f"webhook:{server.url}#ca-file={cert}").send(sample_alert())
    assert len(server.requests) == 1
    server.close()


def test_alerts_on_trial_are_told_to_nobody(server):
    for kind in ("webhook", "alertmanager"):
        open_sink(f"{kind}:{server.url}").send(sample_alert(shadow=True))
    assert server.requests == []


# Alertmanager


DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def check_posted(posted):
    """Check the rules of ``postableAlerts`` in api/v2/openapi.yaml, and those of Alertmanager's own validation."""
    assert isinstance(posted, list) and posted
    for alert in posted:
        assert alert.keys() <= {"labels", "annotations", "startsAt", "endsAt", "generatorURL"} and "labels" in alert
        for labels in (alert["labels"], alert.get("annotations", {})):
            assert all(isinstance(value, str) for value in labels.values())
        # types.Alert.Validate: names, values in UTF-8, at least one label, an end that isn't before the start.
        assert alert["labels"] and all(alert["labels"].values())
        assert all(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) for name in {**alert["labels"], **alert["annotations"]})
        assert DATE_TIME.fullmatch(alert["startsAt"]) and DATE_TIME.fullmatch(alert["endsAt"])
        assert moment(alert["startsAt"]) <= moment(alert["endsAt"])
    return posted


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@pytest.fixture
def alertmanager(server):
    return open_sink(f"alertmanager:{server.url}")


def test_it_is_posted_to_the_api_and_ends_three_repeats_later(server, alertmanager):
    alertmanager.send(sample_alert())
    ((path, _, posted),) = server.requests
    assert path == "/api/v2/alerts"
    (alert,) = check_posted(posted)
    now = datetime.now(moment(alert["endsAt"]).tzinfo)
    assert abs(moment(alert["endsAt"]) - now - timedelta(seconds=180)) < timedelta(seconds=5)
    assert abs(now - moment(alert["startsAt"]) - timedelta(seconds=5)) < timedelta(seconds=5)
    assert alert["annotations"]["countdown"] == "panic in ≤ 16 s"
    assert "spin" in alert["annotations"]["culprit"]


def test_a_path_before_the_api_is_kept(server):
    open_sink(f"alertmanager:{server.url}/am/").send(sample_alert())
    assert server.requests[0][0] == "/am/api/v2/alerts"


def test_labels_are_identity_only(server, alertmanager):
    alertmanager.send(sample_alert(sequence=1, at_ns=100 * SECOND, stack=("spin",)))
    alertmanager.send(sample_alert(sequence=2, at_ns=103 * SECOND, stack=("other", "stack"), source="sentinel 1"))
    alertmanager.send(sample_alert(sequence=3, at_ns=120 * SECOND, state=State.RESOLVED))
    (first,), (second,), (third,) = map(check_posted, server.bodies)
    assert first["labels"] == second["labels"] == third["labels"]
    assert first["labels"] == {
        "alertname": "foreshock: CPU stuck in the kernel",
        "node": "cu39",
        "severity": "page",
        "rule": "soft-lockup",
        "subject_kind": "cpu",
        "subject": "3",
    }
    assert moment(third["endsAt"]) <= datetime.now(moment(third["endsAt"]).tzinfo)


def test_what_fires_is_repeated_and_what_is_over_is_not(server, alertmanager):
    alertmanager.repeat()
    assert server.requests == []
    alertmanager.send(sample_alert(name="3"))
    alertmanager.send(sample_alert(name="4"))
    alertmanager.send(sample_alert(name="4", state=State.RESOLVED, sequence=2))
    alertmanager.repeat()
    (repeated,) = check_posted(server.bodies[-1])
    assert repeated["labels"]["subject"] == "3"


def test_a_courier_repeats_in_time(server, alertmanager):
    alertmanager.repeat_seconds = 0.1
    courier = Courier(alertmanager)
    courier.send(sample_alert())
    time.sleep(0.5)
    courier.close()
    assert len(server.requests) >= 3
    assert all(len(check_posted(posted)) == 1 for posted in server.bodies)


def test_a_severity_that_rises_ends_the_lower_one(server, alertmanager):
    alertmanager.send(sample_alert(severity=Severity.WARNING))
    alertmanager.send(sample_alert(severity=Severity.PAGE, sequence=2))
    page, warning = check_posted(server.bodies[-1])
    assert (page["labels"]["severity"], warning["labels"]["severity"]) == ("page", "warning")
    assert moment(warning["endsAt"]) < moment(page["endsAt"])
    alertmanager.repeat()
    assert [alert["labels"]["severity"] for alert in server.bodies[-1]] == ["page"]


def test_what_could_not_be_sent_is_in_the_next_repeat(server, alertmanager):
    server.answer = (503, {}, b"")
    with pytest.raises(OutputError):
        alertmanager.send(sample_alert())
    server.answer = (200, {}, b"")
    alertmanager.repeat()
    assert len(check_posted(server.bodies[-1])) == 1


def test_what_it_refuses_does_not_spoil_the_others(server, alertmanager):
    alertmanager.send(sample_alert(name="3"))
    server.answer = (400, {}, b"bad")
    with pytest.raises(Refused):
        alertmanager.send(sample_alert(name="4"))
    server.answer = (200, {}, b"")
    alertmanager.repeat()
    assert [alert["labels"]["subject"] for alert in server.bodies[-1]] == ["3"]


@pytest.mark.parametrize("since_s", [0, 95, 10**10])
def test_wild_clocks_and_hostile_names_still_make_valid_alerts(server, alertmanager, since_s):
    alertmanager.send(hostile_alert())
    alertmanager.send(sample_alert(since_ns=since_s * SECOND, at_ns=2**63))
    for posted in server.bodies:
        for alert in check_posted(posted):
            assert all(value.isprintable() for value in {**alert["labels"], **alert["annotations"]}.values())


def test_a_subject_without_a_name_has_no_empty_label(server, alertmanager):
    alertmanager.send(sample_alert(name=""))
    assert "subject" not in check_posted(server.bodies[0])[0]["labels"]


def test_it_keeps_a_bounded_number(server, alertmanager):
    for number in range(300):
        alertmanager.send(sample_alert(name=str(number)))
    alertmanager.repeat()
    assert len(server.bodies[-1]) == 256


def test_this_process_leaves_no_descriptor_open(server, alertmanager):
    alertmanager.send(sample_alert())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        alertmanager.send(sample_alert())
    time.sleep(0.2)
    assert len(os.listdir("/proc/self/fd")) <= before + 2
