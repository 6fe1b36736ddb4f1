"""``foreshock fleet serve`` as a process: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from unit.fleet_samples import SECOND, demo
from unit.sink_samples import hostile_alert, sample_alert

from tracer.alerts.engine import Identity
from tracer.sinks.stream import Stream


class Process:
    """The verb, running; ``out`` and ``err`` are its lines so far."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "tracer", "fleet", "serve", "--listen", "127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.out, self.err = [], []
        self._readers = [
            threading.Thread(target=self._read, args=parts)
            for parts in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()
        self.until(lambda: self.port)

    def _read(self, stream, lines):
        for line in stream:
            lines.append(line)

    @property
    def port(self):
        found = re.findall(r"listening on 127\.0\.0\.1:(\d+)", "".join(list(self.err)))
        return int(found[0]) if found else 0

    def until(self, true, seconds=20.0):
        give_up = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < give_up, (self.out, self.err)
            time.sleep(0.02)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(10)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


@contextlib.contextmanager
def running(*arguments):
    process = Process(*arguments)
    try:
        yield process
    finally:
        process.close()


@contextlib.contextmanager
def node(port, name="cu39", source="agent", **options):
    said = []
    stream = Stream("127.0.0.1", port, Identity(name, "b007", 0, source), SECOND, options, said.append)
    give_up = time.monotonic() + 10
    while stream.fileno() < 0 and time.monotonic() < give_up:
        stream.beat()
        time.sleep(0.02)
    assert stream.fileno() >= 0, said
    yield stream
    stream.close()


def refused(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tracer", "fleet", "serve", *arguments], capture_output=True, text=True, timeout=30
    )
    assert "Traceback" not in done.stderr and done.stdout == ""
    return done.returncode, done.stderr


def test_an_alert_is_two_lines_once_however_many_tell_it_and_the_end_is_a_line_of_totals():
    with running() as there:
        with node(there.port) as agent, node(there.port, source="sentinel 0") as sentinel:
            agent.introduce(demo().header)
            for windows in demo().intervals[:3]:
                assert agent.send_windows(windows)
            assert sentinel.send_now(sample_alert(source="sentinel 0"))
            assert agent.send_now(sample_alert())
            assert agent.send_now(sample_alert(shadow=True, name="9"))
            there.until(lambda: len(there.out) >= 2)
        assert there.stop() == 0
        there.close()
        assert len(there.out) == 2
        assert " UTC  PAGE  cu39: CPU 3 has been in the kernel for 5 s; panic in ≤ 16 s" in there.out[0]
        assert there.err[0].startswith("foreshock: keeps the last 5 min 00 s of at most 1")
        assert re.fullmatch(
            r"foreshock: 1 node, \d+ frames, 2 alerts told, 0 silent without a goodbye, 0 complaints\n", there.err[-1]
        )


def test_as_json_also_what_is_on_trial():
    with running("--json") as there:
        with node(there.port) as agent:
            agent.send_now(hostile_alert())
            agent.send_now(sample_alert(shadow=True, name="9"))
            there.until(lambda: len(there.out) == 2)
        assert there.stop(signal.SIGINT) == 0
        first, second = map(json.loads, there.out)
        assert first["node"] == "cu39" and second["shadow"] is True
        assert all(line.rstrip("\n").isascii() and line.rstrip("\n").isprintable() for line in there.out)


def test_a_node_that_dies_is_paged_within_four_seconds_and_one_that_leaves_is_not():
    with running() as there:
        with node(there.port, "leaves"):
            pass
        with node(there.port, "dies") as dying:
            dying.send_windows(demo().intervals[0])
            dying._socket.shutdown(socket.SHUT_RDWR)
            began = time.monotonic()
            there.until(lambda: there.out, 6)
            assert 2.5 < time.monotonic() - began < 4.5
            while len(there.out) < 4:
                dying.beat()
                time.sleep(0.05)
                assert time.monotonic() - began < 10
        assert "PAGE  dies: silent for 3." in there.out[0] and "busiest CPU" in there.out[0]
        assert "RESOLVED  dies: speaks again after" in there.out[2]
        there.stop()


def test_garbage_is_one_line_each_and_nothing_else():
    with running() as there:
        for data in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(10_000)):
            with socket.create_connection(("127.0.0.1", there.port)) as made:
                made.sendall(data)
                with contextlib.suppress(ConnectionResetError):
                    while made.recv(4096):
                        pass
        there.until(lambda: len(there.err) == 4)
        assert there.stop() == 0
        assert all("not let in: not a foreshock recording" in line for line in there.err[2:4])


def test_an_output_that_nobody_reads_does_not_hold_up_the_receiver():
    with running("--json") as there:
        os.kill(there.process.pid, 0)
        with node(there.port) as agent:
            for number in range(200):
                agent.send_now(sample_alert(name=str(number), task="x" * 3000))
                agent.beat()
        # This test does read; what it checks is that the end is in order with much still to be written.
        assert there.stop() == 0


def test_with_a_token(tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret")
    with running("--token-file", str(token)) as there:
        with node(there.port, **{"token-file": str(token)}) as agent:
            agent.send_now(sample_alert())
            there.until(lambda: there.out)
        there.stop()
        assert "s3cret" not in "".join(there.out + there.err)


def test_beyond_loopback_it_needs_a_token_or_to_be_told():
    code, said = refused("--listen", "0.0.0.0:0")
    assert code == 2 and "0.0.0.0 can be reached from other hosts, and there is no token." in said
    assert refused("--listen", ":::0")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--listen", "nowhere"), 2, "is no HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), 2, "is no HOST:PORT"),
        (("--listen", "no.such.host.invalid:1"), 2, "there is no address"),
        (("--token-file", "/nonexistent"), 2, "can't be read"),
        (("--tls-key", "/nonexistent"), 2, "TLS needs a certificate"),
        (("--tls-cert", "/nonexistent"), 2, "can't be used"),
        (("--tls-cert", "/dev/null"), 2, "can't be used"),
        (("--tls-cert", "/dev/null", "--tls-ca", "/nonexistent"), 2, "can't be used"),
        (("--keep", "x"), 2, "is no duration"),
        (("--nodes", "0"), 2, "--nodes"),
    ],
)
def test_what_can_not_be_is_one_line_and_its_exit_code(arguments, code, says):
    got, said = refused(*arguments)
    assert got == code and says in said and len(said.splitlines()) <= 2


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_with_its_output_closed_it_does_not_begin(form):
    command = [sys.executable, "-m", "tracer", "fleet", "serve", "--listen", "127.0.0.1:0", *form]
    done = subprocess.run(
        command, stderr=subprocess.PIPE, text=True, timeout=20, preexec_fn=lambda: os.close(1), check=False
    )
    assert done.returncode == 5
    assert done.stderr.splitlines()[0] == "foreshock: error: can't write the output: standard output is closed"


def test_a_port_in_use_is_exit_code_3():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = refused("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert code == 3 and "can't listen on port" in said
