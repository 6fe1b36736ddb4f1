"""How many nodes one ``foreshock fleet serve`` takes: ``python -m tests.bench.receiver [--nodes N] [--seconds S]``.

Every node sends intervals, one a second, over a connection of its own: the demo's of 2 CPUs, or made-up ones of 256
busy CPUs with ``--big``. What counts is the receiver's own
CPU time per frame, which other work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tracer.collect.collector import Collector
from tracer.recording import FrameEncoder, read_frame, read_recording
from tracer.recording.frames import PREAMBLE
from tracer.recording.greeting import GREETING_BYTES, Hello, read_nonce

from . import bignode

DEMO = Path(__file__).parents[2] / "tracer" / "sample" / "demo.fsk"
SECOND = 1_000_000_000


def main() -> int:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.receiver", description=main.__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--seconds", type=int, choices=range(1, 21), default=10, metavar="1-20")
    parser.add_argument("--big", action="store_true", help="nodes of 256 CPUs")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    command = [sys.executable, "-m", "tracer", "fleet", "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as receiver:
        try:
            print(measure(receiver, options.nodes, encoded(options.big, options.seconds)))
        finally:
            receiver.send_signal(signal.SIGTERM)
            print(receiver.communicate()[1].strip())
    return 0


def measure(receiver: subprocess.Popen[str], nodes: int, frames: Sequence[bytes]) -> str:
    """Return the receiver's cost while so many nodes send these frames, one a second."""
    port = listens_on(receiver)
    connections = [greeted(port, f"node{number}") for number in range(nodes)]
    cpu, began = cpu_seconds(receiver.pid), time.monotonic()
    for second, frame in enumerate(frames):
        for number, connection in enumerate(connections):
            connection.sendall(frame)
            # Spread over the second, as nodes that know nothing of each other do.
            time.sleep(max(0.0, began + second + number / nodes - time.monotonic()))
    took, cpu = time.monotonic() - began, cpu_seconds(receiver.pid) - cpu
    count, size = nodes * len(frames), sum(map(len, frames)) / len(frames)
    return (
        f"{nodes} nodes, {count / took:.0f} frames/s of {size / 1024:.1f} KiB: {100 * cpu / took:.0f} % of one CPU,"
        f" {1e3 * cpu / count:.2f} ms per frame (at most {count / cpu:.0f}/s), {resident_mib(receiver.pid):.0f} MiB"
    )


def encoded(big: bool, seconds: int) -> list[bytes]:
    """Return so many intervals as frames."""
    encoder = FrameEncoder()
    if not big:
        return [encoder.windows(windows) for windows in read_recording(DEMO).intervals[:seconds]]
    session = bignode.Node()
    session.count()
    collector = Collector(session, bignode.Names())  # type: ignore[arg-type]
    intervals = []
    for _ in range(seconds):
        session.count()
        intervals.append(encoder.windows(collector.collect()))
    return intervals


def listens_on(receiver: subprocess.Popen[str]) -> int:
    """Return the receiver's port, which it says."""
    assert receiver.stderr is not None
    for line in receiver.stderr:
        if found := re.search(r"listening on .*:(\d+)", line):
            return int(found[1])
    raise SystemExit("the receiver did not start")


def greeted(port: int, node: str) -> socket.socket:
    """Return a connection that the receiver has welcomed."""
    made = socket.create_connection(("127.0.0.1", port))
    said = made.recv(GREETING_BYTES)
    frame = read_frame(io.BytesIO(said[len(PREAMBLE) :]).read)
    assert frame is not None
    made.sendall(Hello(node, f"boot of {node}", "agent", SECOND).packed(read_nonce(frame), None))
    made.recv(GREETING_BYTES)
    return made


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Return a process's memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


if __name__ == "__main__":
    raise SystemExit(main())
