"""The black box on disks that fill up or hang: real file systems of our own, frozen by the kernel."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from unit.blackbox_samples import alert, header
from unit.recording_samples import interval

from tracer.blackbox import Recorder
from tracer.blackbox.box import Box
from tracer.errors import OutputError

SIZE = 1 << 20


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Return a function that mounts a small file system, ``"tmpfs"`` or ``"ext4"``, and returns where."""
    with ExitStack() as undo:

        def mount(kind: str, megabytes: int) -> Path:
            place = tmp_path / f"mounted-{kind}"
            place.mkdir()
            if kind == "tmpfs":
                _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "foreshock-test", place)
            else:
                image = tmp_path / "image"
                with open(image, "wb") as file:
                    file.truncate(megabytes << 20)
                _run("mkfs.ext4", "-q", image)
                _run("mount", "-o", "loop", image, place)
            undo.callback(_unmount, place)
            return place

        yield mount


def _unmount(place: Path) -> None:
    with suppress(subprocess.CalledProcessError):
        _run("fsfreeze", "-u", place)
    for _ in range(500):
        if subprocess.run(["umount", place], capture_output=True, timeout=30).returncode == 0:
            return
        time.sleep(0.01)
    # A test that failed may have left a recorder, whose writer ends with this process.
    _run("umount", "-l", place)


def _wait(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.01)


def _fill(place: Path) -> None:
    with open(place / "filler", "wb") as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
            file.flush()


def _state(pid: int) -> str:
    """Return the letter of a process's state; "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except FileNotFoundError:
        return ""


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_disk_stops_the_start_and_leaves_nothing(mounts, kind: str):
    place = mounts(kind, 8)
    with pytest.raises(OutputError, match="no space left on device") as error:
        Recorder(str(place / "box"), 64 << 20, header())
    assert "--blackbox-size" in error.value.hint and "\n" not in error.value.message
    assert not (place / "box").exists()


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_disk_that_fills_up_later_does_not_matter(mounts, kind: str):
    place = mounts(kind, 8)
    recorder = Recorder(str(place / "box"), SIZE, header())
    _fill(place)
    with pytest.raises(OSError, match="No space left"):
        (place / "more").write_bytes(bytes(1 << 20))
    for second in range(300):
        recorder.windows(interval(second))
    recorder.alert(alert(300))
    recorder.close()
    (status,) = recorder.status()
    assert (status.durable, status.lost, status.dropped) == (302, 0, 0)
    with Box(place / "box") as box:
        assert len(list(box.alerts())) == 1 and not any(vars(box.missing).values())


def test_old_boxes_make_room_and_the_last_one_stays(mounts):
    place = mounts("ext4", 8)
    for boot in range(6):
        recorder = Recorder(str(place / "box"), 2 << 20, header(boot_id=f"{boot}" * 36))
        recorder.windows(interval(boot))
        recorder.close()
        os.utime(place / "box", (boot * 1000, boot * 1000))
    boxes = sorted(one.name for one in place.iterdir() if one.name.startswith("box"))
    assert boxes[0] == "box" and boxes[-1].startswith("box.44444444-") and 2 <= len(boxes) <= 3


_CALLER = """
import json, os, sys, time
sys.path.insert(0, sys.argv[2])
from unit.blackbox_samples import alert, header
from unit.recording_samples import interval
from tracer.blackbox import Recorder
recorder = Recorder(sys.argv[1], 8 << 20, header())
recorder.windows(interval(0))
while recorder.status()[0].durable < 1:
    time.sleep(0.01)
print(json.dumps({"writer": recorder._lanes[0]._process.pid}), flush=True)
sys.stdin.readline()
windows, alerts = [], []
for number in range(1, 40):
    began = time.perf_counter()
    recorder.windows(interval(number))
    between = time.perf_counter()
    recorder.alert(alert(number + 1.0, began_s=number))
    windows.append(between - began)
    alerts.append(time.perf_counter() - between)
began = time.perf_counter()
while not recorder.status()[0].dropped:
    recorder._send(bytes(600_000), 2, urgent=False)  # larger than a segment: fills the queue, not the box
print(json.dumps({"windows": windows, "alerts": alerts, "dropped": recorder.status()[0].dropped}), flush=True)
sys.stdin.readline()
recorder.close()
"""


@pytest.mark.parametrize("end", ["killed", "closed"])
def test_a_disk_that_hangs_is_noticed_by_the_writer_alone(mounts, checkout: Path, end: str):
    place = mounts("ext4", 32)
    caller = subprocess.Popen(
        [sys.executable, "-c", _CALLER, place / "box", checkout / "tests"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert caller.stdin is not None and caller.stdout is not None
    try:
        writer = json.loads(caller.stdout.readline())["writer"]
        _run("fsfreeze", "-f", place)
        caller.stdin.write("\n")
        caller.stdin.flush()
        said = json.loads(caller.stdout.readline())
        _wait(lambda: _state(writer) == "D")
        # Medians: this machine may be busy with other things.
        assert statistics.median(said["windows"]) < 0.001 and statistics.median(said["alerts"]) < 0.001
        assert said["dropped"] > 0
        began = time.monotonic()
        if end == "killed":
            caller.kill()
        else:
            caller.stdin.write("\n")
            caller.stdin.flush()
        caller.wait(timeout=10)
        # Killed it is gone at once; closing gives the disk two seconds.
        assert time.monotonic() - began < (1 if end == "killed" else 4)
        assert _state(writer) == "D"
        os.kill(writer, signal.SIGTERM)
    finally:
        with suppress(subprocess.CalledProcessError):
            _run("fsfreeze", "-u", place)
        caller.kill()
        caller.wait()
        caller.stdin.close()
        caller.stdout.close()
    _wait(lambda: _state(writer) in ("", "Z"))
    with Box(place / "box") as box:
        assert [one.at_ns // 10**9 for one in box.alerts()] == list(range(2, 41))
        assert len(list(box.intervals(1 << 62))) == 40
        assert box.goodbye == (None if end == "killed" else "stopped")
        assert not box.missing.torn and not box.missing.damaged


def test_the_mirror_goes_on_when_the_first_disk_hangs(mounts, tmp_path: Path):
    place = mounts("ext4", 16)
    recorder = Recorder(str(place / "box"), SIZE, header(), mirror=str(tmp_path / "mirror"))
    try:
        _run("fsfreeze", "-f", place)
        recorder.alert(alert(7))
        _wait(lambda: recorder.status()[1].durable == 1)
        first, _ = recorder.status()
        assert (first.durable, first.behind) == (0, 1)
        with Box(tmp_path / "mirror") as box:
            assert len(list(box.alerts())) == 1
    finally:
        _run("fsfreeze", "-u", place)
        recorder.close()


def test_a_disk_that_hangs_at_the_start_is_a_note(mounts, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracer.blackbox.lane._START_SECONDS", 0.3)
    place = mounts("ext4", 16)
    _run("fsfreeze", "-f", place)
    try:
        recorder = Recorder(str(place / "box"), SIZE, header())
        assert "has not answered" in recorder.notes[0]
        recorder.alert(alert(7))
    finally:
        _run("fsfreeze", "-u", place)
    _wait(lambda: recorder.status()[0].durable == 1)
    recorder.close()
    with Box(place / "box") as box:
        assert len(list(box.alerts())) == 1
