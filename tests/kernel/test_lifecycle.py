"""Whoever is stopped or killed, and when: nothing stays attached, nothing is left behind, and the end is told."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.objects import all_ids, children, orphans

from tracer.errors import UnavailableError

MOMENTS = 5
#: From the start of the process to well into the first intervals.
SPAN_SECONDS = 1.5


class Recording:
    """``foreshock record`` in a process of its own, with a folder for its temporary files."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.folder = folder
        (folder / "temporary").mkdir()
        command = [sys.executable, "-m", "tracer", "record", "--interval", "200ms", "--for", "20s"]
        command += ["--quiet", "-o", str(folder / "trace.fsk")]
        self.process = subprocess.Popen(
            command,
            cwd=checkout,
            env={**os.environ, "TMPDIR": str(folder / "temporary")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.seen: dict[int, str] = {}

    def watch(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Note the children that come and go for so long, or until something holds; says whether it does."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for child in children(self.process.pid):
                self.seen.setdefault(child, _started(child))
            if until():
                return True
            time.sleep(0.002)
        return until()

    def loader(self) -> int:
        """Return the loader's pid; 0 before and after."""
        for child in children(self.process.pid):
            if b"loader.main" in _command(child):
                return child
        return 0

    def end(self) -> str:
        """Wait for the end; returns what the process said on standard error."""
        self.watch(15, lambda: self.process.poll() is not None)
        assert self.process.returncode is not None, "still running"
        assert self.process.stderr is not None
        with self.process.stderr:
            return self.process.stderr.read()

    def left_over(self) -> list[str]:
        """Name the processes and temporary files that are still there."""
        alive = [f"process {pid}" for pid, started in self.seen.items() if started and _started(pid) == started]
        return alive + [str(path) for path in (self.folder / "temporary").iterdir()]


def _started(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def recordings(checkout: Path, tmp_path: Path) -> Iterator[Iterator[tuple[Recording, float]]]:
    """Recordings that just started, each with a random moment; afterwards nothing of theirs may be left."""
    made: list[Recording] = []
    chance = random.Random(tmp_path.name)
    before = all_ids()

    def start() -> Iterator[tuple[Recording, float]]:
        for number in range(MOMENTS):
            folder = tmp_path / str(number)
            folder.mkdir()
            made.append(Recording(checkout, folder))
            yield made[-1], chance.uniform(0, SPAN_SECONDS)

    try:
        yield start()
        assert orphans(before) == {}
        for recording in made:
            recording.watch(3, lambda: not recording.left_over())  # noqa: B023
            assert recording.left_over() == []
    finally:
        for recording in made:
            recording.process.kill()
            recording.process.wait()
            # A loader that a test stopped before it asked to die with its parent.
            for pid, started in recording.seen.items():
                if started and _started(pid) == started:
                    os.kill(pid, signal.SIGKILL)


def _said_in_one_line(words: str) -> bool:
    return "Traceback" not in words and len([line for line in words.splitlines() if line.startswith("foreshock:")]) <= 1


def _as_python_begins(words: str) -> bool:
    """Whether Python gave up in its own start: on a busy machine that may take as long as the first moments."""
    return "Fatal Python error: init_" in words


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_asked_to_stop_at_any_moment(number: signal.Signals, recordings):
    for recording, moment in recordings:
        recording.watch(moment)
        recording.process.send_signal(number)
        words = recording.end()
        # In good order once the command has begun; before that, as Python itself ends.
        assert _as_python_begins(words) or recording.process.returncode in (0, 130, -number), (moment, words)
        if recording.process.returncode == 0:
            assert words == ""
            assert (recording.folder / "trace.fsk").stat().st_size > 0
        elif recording.process.returncode == 130:
            assert _said_in_one_line(words), (moment, words)


def test_interrupted_while_the_loader_hangs(recordings):
    recording, _ = next(recordings)
    assert recording.watch(10, lambda: recording.loader() != 0)
    os.kill(recording.loader(), signal.SIGSTOP)
    # Until it waits for the loader, the first request is only noted.
    recording.watch(2)
    began = time.monotonic()
    recording.process.send_signal(signal.SIGINT)
    words = recording.end()
    assert time.monotonic() - began < 1
    assert recording.process.returncode == 130, words
    assert _said_in_one_line(words), words


def test_interrupted_twice(recordings):
    for recording, moment in recordings:
        recording.watch(moment)
        recording.process.send_signal(signal.SIGINT)
        recording.watch(0.02)
        recording.process.send_signal(signal.SIGINT)
        words = recording.end()
        assert _as_python_begins(words) or recording.process.returncode in (0, 130, -signal.SIGINT), (moment, words)


def test_killed_at_any_moment(recordings):
    for recording, moment in recordings:
        recording.watch(moment)
        recording.process.kill()
        recording.end()
        assert recording.process.returncode == -signal.SIGKILL


def test_the_loader_killed_at_any_moment(recordings):
    killed = 0
    for recording, moment in recordings:
        assert recording.watch(10, lambda: recording.loader() != 0)  # noqa: B023
        loader = recording.loader()
        # It lives for about half a second.
        recording.watch(moment / 4)
        if recording.loader() == loader:
            os.kill(loader, signal.SIGKILL)
            killed += 1
            words = recording.end()
            if recording.process.returncode:
                assert recording.process.returncode == UnavailableError.exit_code, words
                assert words.startswith("foreshock: error: the loader ended"), words
                assert _said_in_one_line(words), words
            continue
        recording.process.terminate()
        recording.end()
    assert killed
