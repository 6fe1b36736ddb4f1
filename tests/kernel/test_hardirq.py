"""hardirq: against /proc/interrupts while the disk, the timer and other CPUs interrupt; against cpustate's time."""

from __future__ import annotations

import mmap
import os
import platform
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel.driven import Driven
from kernel.holding import instruction, load_64
from kernel.traced import counted
from kernel.workload import Proc, Task, per_cpu, test_run

from tracer.kernel.loader.btf import Btf
from tracer.kernel.loader.syscalls import _bpf, load_program
from tracer.kernel.maps import MappedArray

_ARRAY, _MMAPABLE, _MAP_VALUE = 2, 1 << 10, 2
VECTORS = 1_000_000
PING = """
to, back = os.pipe(), os.pipe()
if not os.fork():
    os.sched_setaffinity(0, {int(sys.argv[2])})
    for _ in range(int(sys.argv[1])):
        os.write(back[1], os.read(to[0], 1))
    os._exit(0)
for _ in range(int(sys.argv[1])):
    os.write(to[1], b"x")
    os.read(back[0], 1)
os.wait()
"""

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="vectors are x86's")


def read_disk(folder: Path, seconds: float) -> None:
    """Read past the page cache, 4 KiB at a time: one interrupt each on most disks."""
    path = folder / "blocks"
    path.write_bytes(os.urandom(1 << 20))
    page = mmap.mmap(-1, 4096)
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return  # a file system without direct reads; whatever else interrupts has to do
    os.fsync(file)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.preadv(file, [page], 4096 * (time.monotonic_ns() % 256))
    os.close(file)


def test_counts_every_line_as_proc_interrupts_does(attach, tmp_path):
    traced = attach("hardirq")
    proc = Proc("/proc/interrupts", traced)
    read_disk(tmp_path, 1.0)
    window = proc.end()["hardirq.run"]
    lines = {name: row for name, row in proc.most.items() if name.isdigit()}
    for name, row in lines.items():
        for cpu in row:
            rows = window.rows[(window.rows["cpu"] == cpu) & (window.rows["irq"] == int(name))]
            calls = counted(rows) + int(rows["none_count"].sum())
            assert proc.agrees(name, cpu, calls), proc.told(name, cpu, calls)
    assert sum(sum(row.values()) for row in lines.values()) > 0, "no device interrupted"
    assert window.losses["folded"] == 0


def test_lines_have_their_names_and_rows_only_where_they_interrupted(attach, tmp_path):
    traced = attach("hardirq")
    proc = Proc("/proc/interrupts", traced)
    read_disk(tmp_path, 0.3)
    rows = proc.end()["hardirq.run"].rows
    last_words = {line.partition(":")[0].strip(): line for line in Path("/proc/interrupts").read_text().splitlines()}
    for row in rows[rows["irq"] < VECTORS]:
        assert proc.most[str(row["irq"])][row["cpu"]] > 0
        assert row["name"].decode() in last_words[str(row["irq"])]


@x86
def test_counts_vectors_as_proc_interrupts_does(attach):
    cpus = sorted(os.sched_getaffinity(0))
    traced = attach("hardirq")
    proc = Proc("/proc/interrupts", traced)
    with Task(PING, 3000, cpus[-1], cpu=cpus[0]) as task:
        task.go()
        task.result()
    window = proc.end()["hardirq.run"]
    for name in ("LOC", "RES", "CAL", "IWI"):
        for cpu in proc.most[name]:
            count = counted(window.rows[(window.rows["cpu"] == cpu) & (window.rows["name"] == name.encode())])
            assert proc.agrees(name, cpu, count), proc.told(name, cpu, count)
    vectors = window.rows[window.rows["irq"] >= VECTORS]
    assert b"LOC" in vectors["name"] and b"" not in vectors["name"]
    known = {name.encode() for name in per_cpu("/proc/interrupts")} | {b"ERR"}
    assert set(vectors["name"]) <= known


def test_all_lines_together_take_what_cpustate_calls_hardirq(attach, tmp_path):
    traced = attach("hardirq")
    read_disk(tmp_path, 0.5)
    windows = traced.collect()
    rows, times = windows["hardirq.run"].rows, windows["cpustate.time"].rows
    for cpu, total_ns in zip(times["cpu"], times["hardirq_ns"], strict=True):
        lines = rows[rows["cpu"] == cpu]
        lines_ns = int(lines["sum"].sum() + lines["none_ns"].sum())
        # The maps are copied one after the other; what is going on then is in one of them only.
        assert abs(lines_ns - int(total_ns)) < 0.02 * int(total_ns) + 200_000


@pytest.fixture
def driven() -> Iterator[Driven]:
    driven = Driven("hardirq")
    yield driven
    driven.close()


def interrupt(driven: Driven, irq: int, action: int, handled: int) -> None:
    """Make an interrupt; again if a real one came between, since interrupts do not nest and ours lost its beginning."""
    before = made(driven)
    while made(driven) == before:
        driven.run("on_irq_handler_entry", irq, action)
        driven.run("on_irq_handler_exit", irq, action, handled)


def made(driven: Driven) -> int:
    """Return how many interrupts of lines that only tests have were counted so far, those without a row included."""
    rows = driven.session.array("hardirq_rows")
    ours = rows[(rows["irq"] >= 5_000) & (rows["irq"] < VECTORS)]
    return int(ours["run"]["slots"].sum() + ours["none_count"].sum() + rows["folded"].sum())


def test_only_the_handler_that_handled_it_is_charged(driven):
    line, idle, busy = 5_000, 0x1000, 0x2000
    for _ in range(7):
        interrupt(driven, line, idle, 0)
        interrupt(driven, line, busy, 1)
    interrupt(driven, line, busy, 2)  # IRQ_WAKE_THREAD
    rows = driven.rows("hardirq.run")
    rows = rows[rows["irq"] == line]
    silent, charged = rows[np.argsort(rows["none_count"])[::-1]]
    assert (counted(silent), silent["none_count"], silent["sum"]) == (0, 7, 0) and silent["none_ns"] > 0
    assert (counted(charged), charged["none_count"], charged["none_ns"]) == (8, 0, 0) and charged["sum"] > 0


def test_an_end_without_a_beginning_counts_nowhere(driven):
    unmatched = int(driven.session.array("cpus")["unmatched"][Driven.CPU])
    driven.run("on_irq_handler_exit", 5_000, 0x1000, 1)
    assert 5_000 not in driven.rows("hardirq.run")["irq"]
    assert driven.session.array("cpus")["unmatched"][Driven.CPU] == unmatched + 1


def test_more_lines_than_rows_go_to_other_and_are_told(driven):
    for line in range(5_000, 5_200):
        interrupt(driven, line, 0x1000, 1)
    window = driven.window("hardirq.run")
    made = window.rows[(window.rows["irq"] >= 5_000) & (window.rows["irq"] < 5_200)]
    (other,) = window.rows[window.rows["irq"] == -1]
    assert other["name"] == b"other"
    assert 40 <= len(made) <= 64
    assert window.losses["folded"] >= 200 - len(made)
    assert counted(made) + counted(other) >= 200


def test_a_row_long_idle_is_given_to_another_line(driven):
    for line in range(5_000, 5_064):
        interrupt(driven, line, 0x1000, 1)
    live = driven.session.array("hardirq_rows")
    live["used_ns"][(live["irq"] >= 5_000) & (live["used_ns"] > 0)] = 1  # as if used last at boot
    # Only now: until then a real vector that came for the first time found no place, either.
    driven.rows("hardirq.run")
    for line in range(6_000, 6_008):
        for _ in range(3):
            interrupt(driven, line, 0x1000, 1)
    window = driven.window("hardirq.run")
    given = window.rows[(window.rows["irq"] >= 6_000) & (window.rows["irq"] < 7_000)]
    assert len(given) == 8 and (given["slots"].sum(axis=1) == 3).all()
    assert window.losses["folded"] == 0


class Memory:
    """Kernel memory with an address that the test knows: one value of a map, which tells its own."""

    SIZE = 4096

    def __init__(self) -> None:
        self._map = _bpf(0, bytearray(struct.pack("<8I", _ARRAY, 4, self.SIZE, 1, _MMAPABLE, 0, 0, 0)))
        self._view = MappedArray(self._map, np.dtype("u1"), self.SIZE)
        own_address = load_64(1, _MAP_VALUE, self._map) + instruction(0x7B, 1, 1)  # *(u64 *)r1 = r1
        program = load_program(1, own_address + instruction(0xB7) + instruction(0x95), "address")
        test_run(program, data=bytes(64))
        os.close(program)
        self.address = int(self._view.rows[:8].view("u8")[0])

    def write(self, at: int, data: bytes) -> int:
        """Put ``data`` there; return its address."""
        self._view.rows[at : at + len(data)] = np.frombuffer(data, "u1")
        return self.address + at

    def close(self) -> None:
        self._view.close()


@pytest.fixture
def memory() -> Iterator[Memory]:
    memory = Memory()
    yield memory
    memory.close()


def request_irq(memory: Memory, name: bytes, at: int) -> int:
    """Make the irqaction of a device called ``name``, always the same one; return its address."""
    name_offset = Btf.running_kernel().member_offset("irqaction.name")
    assert name_offset is not None
    memory.write(512 + name_offset, struct.pack("<Q", memory.write(at, name + b"\0")))
    return memory.address + 512


def test_a_line_requested_anew_has_its_new_name(driven, memory):
    line = 5_000
    for name in (b"first", b"second"):
        interrupt(driven, line, request_irq(memory, name, at=1024 + len(name)), 1)
    rows = driven.rows("hardirq.run")
    rows = rows[rows["irq"] == line]
    assert {row["name"]: counted(row) for row in rows} == {b"first": 1, b"second": 1}


def test_a_name_written_over_is_read_again(driven, memory):
    line = 5_000
    interrupt(driven, line, request_irq(memory, b"a-long-first-name", at=1024), 1)
    assert set(driven.rows("hardirq.run")["name"]) >= {b"a-long-first-name"}
    time.sleep(1.1)
    interrupt(driven, line, request_irq(memory, b"short", at=1024), 1)
    rows = driven.rows("hardirq.run")
    assert rows["name"][rows["irq"] == line].tolist() == [b"short"]
