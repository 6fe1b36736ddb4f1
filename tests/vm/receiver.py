"""The host's side: everything that leaves a guest, line by line, with one clock, this machine's.

Alerts come the way they come to another host: over TCP to ``foreshock fleet serve``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = ["CHECKOUT", "Line", "Notes", "fleet"]

CHECKOUT = Path(__file__).parents[2]
_START_S = 30


@dataclass(frozen=True)
class Line:
    """One line of a channel; ``at_ns``: when it was here, CLOCK_MONOTONIC ns of this machine."""

    at_ns: int
    channel: str
    text: str


class Notes:
    """Lines of all channels, as they came, also kept in ``file`` with the seconds since the first."""

    def __init__(self, file: Path) -> None:
        self.lines: list[Line] = []
        self._file = file.open("w")
        self._lock = threading.Lock()
        self._readers: list[threading.Thread] = []
        self._streams: list[IO[bytes]] = []

    def follow(self, channel: str, stream: IO[bytes]) -> None:
        """Note the lines of one more channel, until its end."""

        def read() -> None:
            for line in stream:
                self._note(Line(time.monotonic_ns(), channel, line.decode(errors="replace").rstrip()))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        self._readers.append(reader)
        self._streams.append(stream)

    def of(self, channel: str) -> list[Line]:
        """Return the lines of one channel so far."""
        return [line for line in self.lines if line.channel == channel]

    def finish(self) -> None:
        """Wait until all channels are at their end."""
        for reader in self._readers:
            reader.join()
        for stream in self._streams:
            stream.close()
        self._file.close()

    def _note(self, line: Line) -> None:
        with self._lock:
            self.lines.append(line)
            seconds = (line.at_ns - self.lines[0].at_ns) / 1e9
            print(f"{seconds:9.3f} {line.channel:7} {line.text}", file=self._file, flush=True)


@contextmanager
def fleet(notes: Notes) -> Iterator[int]:
    """Run ``foreshock fleet serve`` and note its alerts as channel ``alerts``; give its port."""
    command = [sys.executable, "-m", "tracer", "fleet", "serve", "--json", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    notes.follow("alerts", process.stdout)
    notes.follow("fleet", process.stderr)
    try:
        yield _port(notes, process)
    finally:
        process.terminate()
        process.wait(timeout=_START_S)


def _port(notes: Notes, process: subprocess.Popen[bytes]) -> int:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        for line in notes.of("fleet"):
            if found := re.search(r"listening on .*:(\d+)", line.text):
                return int(found[1])
        time.sleep(0.05)
    said = "; ".join(line.text for line in notes.of("fleet"))
    raise RuntimeError(f"foreshock fleet serve does not listen: {said or 'it said nothing'}")
