"""What processes were and had in memory, out of records: forks, execs, lost ones, and what overlaps."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tracer.kernel import sideband
from tracer.kernel.sideband import ENDED, EXEC, FORK, MAPPED, Record, Sideband
from tracer.kernel.symbols import history, programs
from tracer.kernel.symbols.history import UNKNOWN, History
from tracer.kernel.symbols.mappings import Mapping, Mappings
from tracer.kernel.symbols.processes import Processes
from tracer.kernel.symbols.users import UserStacks

#: No process has such ids: nobody is asked.
PARENT, CHILD = 1 << 29, (1 << 29) + 1
WITH_BUILD_ID = 1 << 14


class Rings:
    """What ``Sideband`` hands out, as a test wants it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.whole = True
        self.lost = 0
        self.trouble = ""

    def read(self) -> tuple[list[Record], bool]:
        records, self.records = self.records, []
        return records, self.whole


def mapped(
    time_ns: int, pid: int, start: int, size: int, path: bytes, offset: int = 0, build_id: bytes = b""
) -> Record:
    """Return what the kernel records of a file, 1:2 and inode 3, or its build id."""
    file = struct.pack("<IIQQ", 1, 2, 3, 4)
    if build_id:
        file = struct.pack("<B3x20s", len(build_id), build_id)
    padded = path + b"\0" * (8 - len(path) % 8)
    body = struct.pack("<QQQ", start, size, offset) + file + struct.pack("<II", 5, 2) + padded
    return Record(time_ns, MAPPED, pid, WITH_BUILD_ID if build_id else 0, body)


@pytest.fixture
def rings() -> Rings:
    return Rings()


@pytest.fixture
def known(rings: Rings) -> History:
    return History(rings)  # type: ignore[arg-type]


def names(processes: Processes, pid: int, start: int, *addresses: int) -> list[bytes] | None:
    """Return what each address is called; no file of these tests can be read."""
    found = processes.resolve(pid, addresses, start)
    return [found[address][1] for address in addresses] if found else None


def test_a_process_is_one_program_after_the_other(rings, known):
    rings.records = [
        Record(10, FORK, CHILD, PARENT, b""),
        Record(20, EXEC, CHILD, 0, b""),
        mapped(21, CHILD, 0x1000, 0x1000, b"/no/a"),
        Record(30, EXEC, CHILD, 0, b""),
        mapped(31, CHILD, 0x1000, 0x1000, b"/no/b", 0x4000),
    ]
    known.update()
    assert [known.at(CHILD, at) for at in (5, 10, 19, 20, 29, 30, 99)] == [0, 10, 10, 20, 20, 30, 30]
    assert [known.next(CHILD, at) for at in (0, 10, 20, 30)] == [FORK, EXEC, EXEC, None]
    processes = Processes(known)
    assert names(processes, CHILD, 20, 0x1004) == [b"[unknown a+0x4]"]
    assert names(processes, CHILD, 30, 0x1004, 0x2000) == [b"[unknown b+0x4004]", b"[unknown]"]
    # The parent was there before anything was seen.
    assert names(processes, CHILD, 10, 0x1004) is None


def test_a_fork_has_what_its_parent_had_then(rings, known):
    rings.records = [
        Record(10, EXEC, PARENT, 0, b""),
        mapped(11, PARENT, 0x1000, 0x3000, b"/no/whole"),
        Record(20, FORK, CHILD, PARENT, b""),
        mapped(21, PARENT, 0x2000, 0x1000, b"/no/later"),
        mapped(22, CHILD, 0x3000, 0x1000, b"/no/own", build_id=bytes(range(1, 21))),
        Record(30, FORK, CHILD + 1, CHILD, b""),
    ]
    known.update()
    processes = Processes(known)
    assert names(processes, PARENT, 10, 0x1000, 0x2000, 0x3000) == [
        b"[unknown whole+0x0]",
        b"[unknown later+0x0]",
        b"[unknown whole+0x2000]",
    ]
    for pid, start in ((CHILD, 20), (CHILD + 1, 30)):
        expected = [b"[unknown whole+0x0]", b"[unknown whole+0x1000]", b"[unknown own+0x0]"]
        assert names(processes, pid, start, 0x1000, 0x2000, 0x3000) == expected
    found = processes.resolve(CHILD, [0x3000], 20)
    assert found == {0x3000: (b"own", b"[unknown own+0x0]", bytes(range(1, 21)).hex().encode())}


def test_what_was_before_a_loss_is_not_known_and_what_came_later_is(rings, known):
    rings.records = [Record(10, EXEC, CHILD, 0, b""), mapped(11, CHILD, 0x1000, 0x1000, b"/no/a")]
    known.update()
    processes = Processes(known)
    assert names(processes, CHILD, known.at(CHILD, 12), 0x1000) == [b"[unknown a+0x0]"]
    rings.records, rings.whole = [Record(20, EXEC, PARENT, 0, b"")], False
    known.update()
    assert [known.at(pid, at) for pid in (CHILD, PARENT) for at in (5, 12, 25)] == [UNKNOWN] * 6
    assert names(processes, CHILD, UNKNOWN, 0x1000) is None
    rings.whole, later = True, time.monotonic_ns()
    rings.records = [Record(later + 10, EXEC, CHILD, 0, b""), mapped(later + 11, CHILD, 0x1000, 0x1000, b"/no/b")]
    known.update()
    assert known.at(CHILD, 12) == UNKNOWN
    start = known.at(CHILD, later)
    assert 12 < start <= later and known.next(CHILD, start) == EXEC and names(processes, CHILD, start, 0x1000) is None
    assert names(processes, CHILD, known.at(CHILD, later + 12), 0x1000) == [b"[unknown b+0x0]"]


@pytest.mark.parametrize("exited", [False, True])
def test_an_exec_that_was_forgotten_is_not_taken_for_none(rings, known, monkeypatch, exited):
    """Of a process that lives its present program would be told; of one that has ended nobody is asked."""
    monkeypatch.setattr(history, "_MAX_PROCESSES", 10)
    rings.records = [Record(10, EXEC, CHILD, 0, b""), Record(20, EXEC, CHILD, 0, b"")]
    if exited:
        rings.records.append(Record(21, ENDED, CHILD, 0, b""))
    rings.records += [Record(30 + n, FORK, 1000 + n, 1, b"") for n in range(20)]
    rings.records += [Record(60 + n, ENDED, 1000 + n, 0, b"") for n in range(20)]
    known.update()
    assert [known.at(CHILD, at) for at in (5, 15, 19)] == ([0] * 3 if exited else [UNKNOWN] * 3)
    assert known.at(CHILD, 25) == (0 if exited else 20)
    # Of others nothing is forgotten that happened since.
    assert known.at(PARENT, 25) == (0 if exited else 20)


def test_the_programs_of_one_process_are_bounded_and_none_is_taken_for_an_older_one(rings, known):
    rings.records = [Record(10 * n, EXEC, CHILD, 0, b"") for n in range(1, 12)]
    known.update()
    assert known.at(CHILD, 115) == 110 and known.at(CHILD, 45) == 40
    assert not known.is_recorded(CHILD, known.at(CHILD, 25)) and known.next(CHILD, known.at(CHILD, 25)) == EXEC


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A shell that becomes another program when it is told to."""
    script = "echo; read go; exec /bin/sleep 1000"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        process.stdout.readline()
        yield process
        process.kill()


def becomes_sleep(process: subprocess.Popen[bytes]) -> None:
    process.stdin.write(b"\n")
    until = time.monotonic() + 20
    while Path(f"/proc/{process.pid}/comm").read_bytes() != b"sleep\n":
        assert time.monotonic() < until
        time.sleep(0.01)


def ends_unreaped(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def test_who_becomes_another_program_while_it_is_asked_is_not_taken_for_the_older_one(rings, known, sleeper):
    stacks = UserStacks(known)
    stacks.begin()
    program = stacks.program(sleeper.pid, 1)
    becomes_sleep(sleeper)
    rings.records = [Record(2, EXEC, sleeper.pid, 0, b"")]
    nowhere = np.array([0x10], "u8").tobytes()
    found = stacks.parts({program: [(nowhere, b"sh"), (nowhere, b"thread")]})
    stacks.close()
    assert [part.frames[0][1] for part in found[program]] == [
        *(b"[unknown before exec: sh]", b"[unknown before exec: thread]")
    ]


def test_the_next_process_of_a_pid_is_not_taken_for_the_one_that_was_asked(rings, known, sleeper, monkeypatch):
    """Both have ended, so long ago that nothing is known of either."""
    monkeypatch.setattr(history, "_MAX_PROCESSES", 1)
    processes, pid = Processes(known), sleeper.pid
    known.update()
    assert names(processes, pid, known.at(pid, 1), 0x10) == [b"[unknown]"] and processes.confirm(pid, 0)
    sleeper.kill()
    sleeper.wait()
    rings.records = [Record(10, ENDED, pid, 0, b"")]
    known.update()
    assert names(processes, pid, known.at(pid, 1), 0x10) == [b"[unknown]"]
    rings.records = [Record(20, FORK, pid, 1, b""), Record(30, ENDED, pid, 0, b""), Record(40, FORK, CHILD, 1, b"")]
    known.update()
    assert names(processes, pid, known.at(pid, 25), 0x10) is None


@pytest.mark.parametrize("becomes", ["another program", "a zombie"])
def test_a_fork_has_what_its_parent_had_before_it_became_another(rings, known, sleeper, becomes):
    """No record has told of that yet: /proc alone does."""
    processes, pid = Processes(known), sleeper.pid
    known.update()
    maps = Mappings.parse(Path(f"/proc/{pid}/maps").read_bytes())
    inside = next(one for one in maps._mappings if one.path.startswith(b"/"))
    (asked,) = processes.resolve(pid, [inside.start]).values()
    assert asked[0] == inside.module and processes.confirm(pid, 0)
    becomes_sleep(sleeper) if becomes == "another program" else ends_unreaped(sleeper)
    rings.records = [Record(10, FORK, CHILD, pid, b"")]
    known.update()
    assert processes.resolve(CHILD, [inside.start], 10) == {inside.start: asked}


def test_a_fork_of_who_was_gone_before_anyone_asked_is_not_known(rings, known, sleeper):
    processes, pid = Processes(known), sleeper.pid
    known.update()
    assert processes.resolve(pid, []) == {} and processes.confirm(pid, 0)  # its memory was not looked at
    becomes_sleep(sleeper)
    rings.records = [Record(10, FORK, CHILD, pid, b"")]
    known.update()
    assert names(processes, CHILD, 10, 0x10) is None


def test_who_is_the_same_as_before_a_loss_is_known_and_who_is_another_program_is_not(rings, known, sleeper):
    stacks = UserStacks(known)
    pid, own = sleeper.pid, os.getpid()
    nowhere = np.array([0x10], "u8").tobytes()

    def told(time_ns: int) -> dict[int, bytes]:
        stacks.begin()
        found = stacks.parts({stacks.program(one, time_ns): [(nowhere, b"comm")] for one in (pid, own)})
        return {one: part.frames[0][1] for (one, _), (part,) in found.items()}

    named, unknown = b"[unknown 0x10]", b"[unknown for want of records: comm]"
    assert told(1) == {pid: named, own: named}
    rings.whole = False
    assert told(1) == {pid: named, own: named}
    becomes_sleep(sleeper)
    before_ns = time.monotonic_ns()
    assert told(1) == {pid: unknown, own: named}
    # From when it was first looked at, what it is now is known to be what it was, however much is lost.
    assert told(time.monotonic_ns()) == {pid: named, own: named}
    assert told(before_ns) == {pid: unknown, own: named}
    stacks.close()


def test_without_memory_for_the_records_nobody_is_believed_to_have_been_what_he_is_now(tmp_path):
    """The kernel refuses: so it does of a folder. A process is known from its first interval's end on."""
    records = Sideband([os.open(tmp_path, os.O_RDONLY)])
    assert records.read() == ([], False) and records.trouble
    known = History(records)
    known.update()
    processes = Processes(known)
    address = id(processes)  # some address of this process, in no code
    assert names(processes, os.getpid(), known.at(os.getpid(), 1), address) is None
    known.update()
    start = known.at(os.getpid(), time.monotonic_ns())
    assert start != UNKNOWN and names(processes, os.getpid(), start, address) == [b"[unknown]"]
    assert known.at(CHILD, 1) == UNKNOWN
    records.close()


def test_what_may_run_on_cpus_that_nobody_records_is_not_known():
    known = History(Sideband([]))
    known.update()
    assert known.at(os.getpid(), 1) == 0
    known.miss("CPUs came online")
    known.update()
    assert known.at(os.getpid(), 1) == UNKNOWN
    known.close()


def test_memory_is_bounded(rings, known, monkeypatch):
    monkeypatch.setattr(history, "_MAX_RECORDS", 100)
    monkeypatch.setattr(programs, "_MAX_MAPPINGS", 50)
    rings.records = [Record(pid, EXEC, pid, 0, b"") for pid in range(1, 1000)]
    rings.records += [mapped(1000 + n, PARENT, n << 12, 1 << 12, b"/no/a") for n in range(60)]
    rings.records += [mapped(2000 + n, CHILD, n << 12, 1 << 12, b"/no/a") for n in range(60)]
    known.update()
    assert known._records <= 100 and len(known._processes) <= 1001
    # Not all of it is known: who asks gets nothing.
    assert known.program(CHILD, 0) is None


def test_ranges_are_cut_where_something_else_came():
    def file(start: int, end: int, path: bytes, offset: int = 0) -> Mapping:
        return Mapping(start, end, offset, (1, 2), path)

    found = Mappings([file(0x1000, 0x5000, b"/a"), file(0x6000, 0x7000, b"/b")])
    found = found.overlaid([file(0x2000, 0x3000, b"/c"), file(0x2000, 0x2800, b"/d")]).without([(0x4800, 0x6800)])
    told = {at: found.find(at) for at in (0x1000, 0x2000, 0x2800, 0x3000, 0x47FF, 0x4800, 0x6800)}
    assert {at: one and (one.path, at - one.start + one.offset) for at, one in told.items()} == {
        0x1000: (b"/a", 0),
        0x2000: (b"/d", 0),
        0x2800: (b"/c", 0x800),
        0x3000: (b"/a", 0x2000),
        0x47FF: (b"/a", 0x37FF),
        0x4800: None,
        0x6800: (b"/b", 0x800),
    }


def test_records_that_are_cut_off_count_as_lost():
    record = struct.pack("<IHHIIQ", 3, 1 << 13, 24, 7, 7, 99)
    assert sideband._records(record) == ([Record(99, EXEC, 7, 0, b"")], 0)
    assert sideband._records(record + record[:20])[1] == sideband._records(bytes(24))[1] == 1


def test_records_that_the_kernel_had_no_room_for_are_counted():
    ended, thread = (struct.pack("<IHHIIIIQQ", 4, 0, 40, 7, 1, tid, 1, 88, 99) for tid in (7, 8))
    lost = struct.pack("<IHHQQQ", 2, 0, 32, 1234, 17, 99)
    assert sideband._records(lost + ended + thread + lost) == ([Record(99, ENDED, 7, 0, b"")], 34)


def test_a_ring_without_room_for_the_largest_record_may_have_lost_one():
    records = Sideband([])
    size, record = records._size, struct.pack("<IHHIIQ", 3, 1 << 13, 24, 7, 7, 99)
    records._rings = [mmap.mmap(-1, mmap.PAGESIZE + size)]
    (ring,) = records._rings
    ring[mmap.PAGESIZE :] = (record * (size // 24 + 1))[:size]
    for head, whole in ((24 * 100, True), (24 * 101, True), (24 * 101 + 24 * ((size - 4000) // 24), False)):
        struct.pack_into("<Q", ring, 1024, head)
        assert records.read()[1] == whole
