"""Sized for big nodes: memory with 256 CPUs, and how many waits are missed when 20,000 threads wake at once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracer import histogram
from tracer.collect.collector import Collector
from tracer.kernel import cpus
from tracer.kernel.job import Options, ordered
from tracer.kernel.session import Session, attach
from tracer.probes import all_probes

CPUS = 256
LIMIT_BYTES = 64_000_000
THREADS = 20_000
ROUNDS = 10


class NoNames:
    def cgroup(self, cgroup_id: int) -> bytes:
        return b""

    def cgroup_of(self, pid: int) -> bytes:
        return b""


@pytest.fixture
def session() -> Iterator[Session]:
    """All light probes, with maps as on a node of 256 CPUs; rows beyond this machine's CPUs stay empty."""
    every = all_probes()
    probes = ordered([probe for probe in every.values() if probe.tier == "light"], every)
    with attach(probes, Options(max(CPUS, cpus.possible_count()), cpus.online())) as session:
        assert not session.refused
        yield session


def locked_bytes() -> int:
    """Return what the kernel itself says all maps of this process take."""
    maps: dict[int, int] = {}
    for path in Path("/proc/self/fdinfo").iterdir():
        try:
            text = path.read_text()
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if "map_id" in fields:
            maps[int(fields["map_id"])] = int(fields["memlock"])
    return sum(maps.values())


def test_all_maps_together_stay_small(session: Session):
    assert session.map_bytes < LIMIT_BYTES
    assert 0 < locked_bytes() < LIMIT_BYTES
    # The kernel counts what user space can't see as well (headers, guard pages), and nothing much besides.
    assert session.map_bytes <= locked_bytes() * 1.05


def test_docs_say_how_large_they_are(session: Session, checkout: Path):
    text = (checkout / "docs" / "safety.md").read_text()
    small, large = re.search(r"([\d.]+) MB on a node with 2 CPUs and ([\d.]+) MB with 256 CPUs", text).groups()
    assert session.map_bytes / 1e6 == pytest.approx(float(large), rel=0.02)
    with attach(session.probes, Options(2, [0])) as on_two:
        assert on_two.map_bytes / 1e6 == pytest.approx(float(small), rel=0.02)


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The thread storm, compiled."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc (Debian: gcc libc6-dev)")
    room = int(Path("/proc/sys/kernel/pid_max").read_text()) - len(list(Path("/proc").glob("[0-9]*/task/*")))
    if room < THREADS * 1.1:
        pytest.skip(f"no room for {THREADS} threads: kernel.pid_max leaves {room}")
    program = tmp_path_factory.mktemp("storm") / "thread_storm"
    source = Path(__file__).with_name("thread_storm.c")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, source], check=True)
    return program


def test_few_waits_are_missed_in_a_storm_of_threads(session: Session, storm: Path):
    collector = Collector(session, NoNames())
    began = time.monotonic()
    subprocess.run([storm, str(THREADS), str(ROUNDS)], check=True, stdout=subprocess.DEVNULL, timeout=60)
    took = time.monotonic() - began
    windows = {(window.probe, window.table): window for window in collector.collect()}
    wait = windows["runqueue", "wait"]
    waits = sum(int(histogram.count(slots)) for slots in wait.rows["slots"])
    missed = wait.losses["unmatched"] + wait.losses["collided"]
    # Every thread waited once per round, and when it was born.
    assert waits + missed >= THREADS * (ROUNDS + 1)
    assert missed <= (waits + missed) / 1000, dict(wait.losses)
    # They did all wait at once: the last in the queue waited while thousands ran.
    longest = max(histogram.max_ns(slots) for slots in wait.rows["slots"])
    assert longest > THREADS / (os.cpu_count() or 1) * 1000
    assert took < 20
