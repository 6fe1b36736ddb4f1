"""detectors: settings and counts, against sysctl(8) and against a warning made on purpose."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracer.kernel.sources import detectors
from tracer.kernel.sources.detectors import Source
from tracer.probes import find_probe

SECOND = 1_000_000_000


@pytest.fixture
def source() -> Iterator[Source]:
    source = Source({})
    source.read(0)
    yield source
    source.close()


def settings(source: Source, now_ns: int) -> dict[str, str]:
    rows = source.read(now_ns)["settings"][0]
    return {row["name"].decode(): row["value"].decode() for row in rows}


@pytest.fixture
def changed() -> Iterator[None]:
    """kernel.hung_task_warnings is changed, which only says how often the kernel speaks, and set back."""
    path = Path("/proc/sys/kernel/hung_task_warnings")
    if not path.exists():
        pytest.skip("no kernel.hung_task_warnings: this kernel does not look for hung tasks")
    before = path.read_text()
    path.write_text("7")
    yield
    path.write_text(before)


def test_settings_are_those_of_sysctl(source):
    told = settings(source, SECOND)
    sysctls = [name for name in told if Path("/proc/sys", *name.split(".")).exists()]
    for name in sysctls:
        said = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=True).stdout
        assert told[name].split() == said.split(), name
    assert "kernel.panic" in sysctls
    timeout = Path("/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout")
    assert told["rcupdate.rcu_cpu_stall_timeout"] == timeout.read_text().strip()


def test_settings_come_at_the_start_and_every_minute(source, changed):
    assert settings(source, SECOND)["kernel.hung_task_warnings"] == "7"
    assert settings(source, 2 * SECOND) == settings(source, 60 * SECOND) == {}
    Path("/proc/sys/kernel/hung_task_warnings").write_text("6")
    assert settings(source, 61 * SECOND)["kernel.hung_task_warnings"] == "6"


def test_what_this_kernel_lacks_has_no_row(source, monkeypatch):
    monkeypatch.setitem(detectors._FILES, "kernel.no_such_thing", "/proc/sys/kernel/no_such_thing")
    told = settings(source, SECOND)
    assert "kernel.no_such_thing" not in told and "kernel.panic" in told


def test_counts_are_the_kernels(source):
    rows, losses = source.read(SECOND)["counts"]
    told = {row["name"].decode(): int(row["total"]) for row in rows}
    assert told["taint"] == int(Path("/proc/sys/kernel/tainted").read_text())
    for name in ("warn", "oops", "rcu_stall"):
        path = Path(f"/sys/kernel/{name}_count")
        assert told.get(name) == (int(path.read_text()) if path.exists() else None)
    assert not rows["new"].any() and losses == {"reset": 0}


def test_differences(tmp_path, monkeypatch):
    for name, number in (("warn", 5), ("taint", 1), ("hung_task", 9)):
        (tmp_path / name).write_text(str(number))
    monkeypatch.setattr(detectors, "_COUNTS", {name: str(tmp_path / name) for name in ("warn", "taint", "hung_task")})
    source = Source({})
    source.read(0)
    for name, number in (("warn", 8), ("taint", 1 | 1 << 9), ("hung_task", 0)):
        (tmp_path / name).write_text(str(number))
    rows, losses = source.read(SECOND)["counts"]
    source.close()
    assert rows.tolist() == [(b"warn", 8, 3), (b"taint", 1 | 1 << 9, 1 << 9), (b"hung_task", 0, 0)]
    assert losses == {"reset": 1}


def test_the_declaration_is_what_comes_out(attach):
    traced = attach("detectors")
    windows = traced.collect()
    for table in find_probe("detectors").tables:
        window = windows[f"detectors.{table.name}"]
        assert len(window.rows) > 0
        assert set(window.rows.dtype.names) == {column.name for column in table.columns}


def test_a_read_is_cheap(source):
    source.read(SECOND)
    costs = []
    for _ in range(50):
        began = time.thread_time_ns()
        source.read(2 * SECOND)
        costs.append(time.thread_time_ns() - began)
    assert sorted(costs)[25] < 500_000
