"""One signal to everybody, as Ctrl-C and timeout(1) send it, is one clean end: goodbyes, a closed box, nothing said."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from bench.objects import all_ids, orphans
from kernel.command import FORESHOCK, foreshock
from kernel.test_agent import free_port
from kernel.watching import Heard, Watching, sentinels
from unit.agent_samples import an_alert
from unit.certificates import make_certificate

from tracer.alerts.record import alert_record


@contextmanager
def receiver(folder: Path) -> Iterator[tuple[str, Path]]:
    """Run one that takes TLS only; yield a stream to it, and what it says of itself: complete at the end."""
    (cert, key), port = make_certificate(folder, "receiver"), free_port()
    address, said = f"127.0.0.1:{port}", folder / "fleet-said"
    command = [*FORESHOCK, "fleet", "serve", "--json", "--listen", address]
    with said.open("w") as notes:
        fleet = Heard(folder / "fleet", [*command, "--tls-cert", str(cert), "--tls-key", str(key)], notes)
    try:
        yield f"stream:{address}#tls-ca={cert}", said
    finally:
        fleet.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_signals_to_the_whole_group_are_one_clean_end(tmp_path, number):
    before, box = all_ids(), tmp_path / "box"
    with receiver(tmp_path) as (stream, said):
        options = ("--sink", "json:-", "--sink", stream, "--blackbox", str(box), "--blackbox-size", "1MiB")
        with Watching(tmp_path, *options, own_group=True) as watching:
            watched = [*sentinels(watching.process.pid).values()]
            time.sleep(2.5)
            # timeout(1) signals its child first, and then the whole group, in which that is again.
            watching.process.send_signal(number)
            os.killpg(watching.process.pid, number)
            assert watching.process.wait(10) == 0
            assert watching.notes == ""
        time.sleep(4)  # for which nobody may be missed
    assert len(watched) == 2 and not any(Path(f"/proc/{pid}").exists() for pid in watched)
    totals = said.read_text().splitlines()[-1]
    assert "1 node" in totals and "0 silent without a goodbye, 0 complaints" in totals, said.read_text()
    story = json.loads(foreshock("postmortem", str(box), "--json").stdout)
    assert story["ending"] == "stopped" and box.stat().st_size == 1 << 20
    assert orphans(before) == {}


def _catches(pid: int, number: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (caught,) = (line.split()[1] for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.timeout(240)
def test_a_signal_at_any_moment_of_the_start_is_one_clean_end(tmp_path):
    before, receivers = all_ids(), []
    with ExitStack() as undo:
        for moment in (0.3, 0.6, 0.9, 1.2, 1.5):
            folder = tmp_path / str(moment)
            folder.mkdir()
            stream, said = undo.enter_context(receiver(folder))
            receivers.append(said)
            watching = Watching(folder, "--sink", "json:-", "--sink", stream, own_group=True)
            undo.callback(watching.close)
            time.sleep(moment)
            begun = _catches(watching.process.pid, signal.SIGTERM)
            os.killpg(watching.process.pid, signal.SIGTERM)
            code = watching.process.wait(15)
            # Before the command has begun it ends as Python does.
            assert code == 0 or (code == -signal.SIGTERM and not begun), (code, watching.notes)
            assert watching.notes == ""
        time.sleep(4)  # for which nobody may be missed
    for said in receivers:
        assert "0 silent without a goodbye" in said.read_text().splitlines()[-1], said.read_text()
    assert orphans(before) == {}


def test_an_agent_that_hangs_is_missed_although_its_sentinels_speak(tmp_path):
    with receiver(tmp_path) as (stream, _), Watching(tmp_path, "--sink", "json:-", "--sink", stream) as watching:
        time.sleep(2)
        watching.process.send_signal(signal.SIGSTOP)
        try:
            watching.wait(lambda: "silent-node" in (tmp_path / "fleet").read_text())
        finally:
            watching.process.send_signal(signal.SIGCONT)
        watching.wait(lambda: "speaks again" in (tmp_path / "fleet").read_text())
        told = [json.loads(line.split(" ", 1)[1]) for line in (tmp_path / "fleet").read_text().splitlines()]
    (silent,) = (alert for alert in told if alert["rule"] == "silent-node" and alert["state"] == "firing")
    assert "its agent silent (still heard: sentinel 0, sentinel 1)" in silent["summary"]


class _Alertmanager(BaseHTTPRequestHandler):
    posted: ClassVar[list[dict]] = []

    def do_POST(self) -> None:
        self.posted.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *given: object) -> None: ...


def test_alerts_of_an_earlier_agent_go_on_where_they_would_end_by_themselves(tmp_path):
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    before = replace(an_alert(), rule="soft-lockup", boot_id=boot_id, at_ns=time.monotonic_ns())
    (tmp_path / "state").write_text(json.dumps({"version": 1, "boot_id": boot_id, "firing": [alert_record(before)]}))
    server = HTTPServer(("127.0.0.1", 0), _Alertmanager)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"alertmanager:http://127.0.0.1:{server.server_port}"
    with Watching(tmp_path, "--sink", "json:-", "--sink", address) as watching:
        watching.wait(lambda: _Alertmanager.posted, 20)
        assert watching.alerts == []
    server.shutdown()
    server.server_close()
    first = _Alertmanager.posted[0]
    assert first["labels"]["rule"] == "soft-lockup" and first["annotations"]["id"] == before.id
    assert first["endsAt"] > first["startsAt"]


def test_the_settings_are_known_from_the_first_moment(tmp_path):
    with Watching(tmp_path, "--foreground") as watching:
        watching.wait(lambda: any(line.startswith("state") for _, line in watching.lines))
        text = "\n".join(line for _, line in watching.lines)
    assert "not known yet" not in text and "soft lockup detector" in text


def test_a_box_of_an_impossible_size_is_refused_before_anything_is_attached(tmp_path):
    for size, code in (("1KiB", 5), ("2GiB", 5), ("64", 2), ("64MB", 2)):
        done = foreshock("agent", "--blackbox", str(tmp_path / "box"), "--blackbox-size", size)
        assert done.returncode == code and len(done.stderr.splitlines()) == 2, done.stderr
    assert not (tmp_path / "box").exists()
