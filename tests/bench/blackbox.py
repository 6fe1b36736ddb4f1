"""What the black box costs: ``python -m tests.bench.blackbox``, as root; the figures are in docs/blackbox.md.

The caller and its writer are pinned, each to one CPU; intervals come from real traces, and from a made-up big node.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles

from tracer.blackbox import Recorder
from tracer.blackbox.layout import BLOCK, blocks_of
from tracer.collect.collector import Collector
from tracer.collect.trace import Request, Trace
from tracer.recording import FrameEncoder
from tracer.units import duration, memory
from tracer.window import Window
from tracer.workloads.packets import Packets
from tracer.workloads.pipes import Pipes

from . import bignode
from .machine import FIRST_CPU, LAST_CPU, describe, say
from .results import Section, table

__all__ = ["measure"]

SECONDS = 20
INTERVALS = 300
SIZE = 64 << 20


def measure(rounds: int) -> Section:
    """Record real and made-up intervals, and time both sides; compare two ways to wait for the disk."""
    section = Section("The black box")
    kinds = {"idle, 2 CPUs": _traced(False), "busy, 2 CPUs": _traced(True), "busy, 256 CPUs": _made_up()}
    rows = []
    with _own_disk() as (folder, device):
        for kind, (header, intervals) in kinds.items():
            say(f"blackbox: {kind}")
            rows.append((kind, *_cost(folder, device, header, intervals)))
    head = ("node", "frame", "to the device", "64 MiB last", "caller's CPU", "`alert()`", "writer's CPU", "its RSS")
    section.blocks += [
        table(head, rows),
        table(("4 KiB made durable", "median", "p99"), [_synced("fdatasync", 0), _synced("O_DSYNC", os.O_DSYNC)]),
    ]
    return section


def _traced(busy: bool) -> tuple[dict, list[list[Window]]]:
    """Return the header and the intervals of a real trace of all light probes."""
    with _work(busy), Trace(Request()) as trace:
        return trace.header(), list(trace.intervals(threading.Event(), SECONDS * 10**9))


@contextmanager
def _work(busy: bool) -> Iterator[None]:
    if not busy:
        yield
        return
    # Bounded: they end by themselves, a little later than the trace.
    with (
        Pipes(20_000 * SECONDS, per_second=20_000) as pipes,
        Packets(20_000 * SECONDS, per_second=20_000, loopback=True) as packets,
    ):
        pipes.go()
        packets.go()
        yield


def _made_up() -> tuple[dict, list[list[Window]]]:
    session = bignode.Node()
    session.count()
    collector = Collector(session, bignode.Names())  # type: ignore[arg-type]
    intervals = []
    for _ in range(8):
        session.count()
        intervals.append(collector.collect())
    return {}, intervals


def _cost(folder: Path, device: str, header: dict, intervals: Sequence[list[Window]]) -> list[str]:
    from unit.blackbox_samples import alert

    os.sched_setaffinity(0, {FIRST_CPU})
    recorder = Recorder(str(folder / "box"), SIZE, header)
    process = recorder._lanes[0]._process
    assert process is not None
    recorder.windows(intervals[0])
    time.sleep(0.5)
    hands = [process.pid, *map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())]
    for hand in hands:
        os.sched_setaffinity(hand, {LAST_CPU})
    ran, on_device = _ran_ns(hands), _sectors(device)
    windows, alerts, one = [], [], alert(1)
    for number, interval in enumerate(islice(cycle(intervals), INTERVALS)):
        began = time.thread_time_ns()
        recorder.windows(interval)
        windows.append(time.thread_time_ns() - began)
        _settle(recorder, number + 2)
    cpu = (_ran_ns(hands) - ran) / INTERVALS
    device_each = (_sectors(device) - on_device) * 512 / INTERVALS
    for number in range(100):
        began = time.thread_time_ns()
        recorder.alert(one)
        alerts.append(time.thread_time_ns() - began)
        _settle(recorder, INTERVALS + 2 + number)
    resident = sum(_resident(hand) for hand in hands)
    recorder.close()
    (folder / "box").unlink()
    frame = median(len(FrameEncoder().windows(interval)) for interval in intervals)
    record = blocks_of(int(frame)) * BLOCK
    return [
        memory(frame),
        f"{memory(device_each)}/s",
        duration(SIZE * 7 / 8 / record * 1e9),
        duration(median(windows)),
        duration(median(alerts)),
        duration(cpu),
        memory(resident),
    ]


def _settle(recorder: Recorder, number: int) -> None:
    while recorder.status()[0].durable < number:
        time.sleep(0.002)
    time.sleep(0.005)


def _ran_ns(pids: Sequence[int]) -> int:
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids)


def _resident(pid: int) -> int:
    """Return the proportional share of a process's memory: the hands have most of theirs in common."""
    line = Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2]
    return int(line.split()[0]) * 1024


def _sectors(device: str) -> int:
    return int(Path(f"/sys/block/{device}/stat").read_text().split()[6])


def _synced(name: str, flag: int) -> tuple[str, str, str]:
    """Time one block after the other in a file that is preallocated and zero-filled, on the checkout's disk."""
    size = 4 << 20
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        fd = os.open(f"{folder}/file", os.O_RDWR | os.O_CREAT | flag, 0o600)
        os.pwrite(fd, bytes(size), 0)
        os.fsync(fd)
        took = []
        for offset in range(0, size // 4, 4096):
            began = time.perf_counter_ns()
            os.pwrite(fd, b"x" * 4096, offset)
            if not flag:
                os.fdatasync(fd)
            took.append(time.perf_counter_ns() - began)
        os.close(fd)
    return name, duration(median(took)), duration(quantiles(took, n=100)[98])


@contextmanager
def _own_disk() -> Iterator[tuple[Path, str]]:
    """A file system of our own, whose device counts nobody else's writes."""
    with tempfile.TemporaryDirectory(prefix="foreshock-bench-") as folder:
        image, place = Path(folder, "image"), Path(folder, "mounted")
        place.mkdir()
        with open(image, "wb") as file:
            file.truncate(200 << 20)
        for command in (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, place]):
            subprocess.run(command, check=True)
        try:
            source = subprocess.run(["findmnt", "-no", "SOURCE", place], check=True, capture_output=True, text=True)
            yield place, source.stdout.strip().removeprefix("/dev/")
        finally:
            subprocess.run(["umount", place], check=True)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))
    print(table(("machine", ""), describe()), *measure(1).blocks, sep="\n\n")
