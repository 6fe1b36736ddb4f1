"""The ledger: its sums are the kernel's own, a thief is named with what it took, and a quota is no thief."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kernel.cpu_group import CpuGroup, cpu_group  # noqa: F401  (a fixture)
from kernel.holding import Holder
from kernel.memory_group import small_group  # noqa: F401  (a fixture)
from kernel.traced import Traced
from kernel.workload import SPIN, Task

from tracer.analysis.ledger import Account, accounts, sentence
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.kernel.threadtimes import SLEEPS

CPU = 1
RUN = ("running_ns", "softirq_ns", "hardirq_ns", "reclaim_ns", "compaction_ns")
DELAY = ("waiting_ns", "throttled_ns")
ASLEEP = tuple(f"{name}_ns" for name in SLEEPS)


def schedstat(pid: int) -> tuple[int, int]:
    """What the kernel says a task has run and waited, ns."""
    run_ns, wait_ns, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
    return run_ns, wait_ns


def switches(pid: int) -> int:
    """How often the kernel says that a task has left its CPU, of its own will or not."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


class Books:
    """Windows of ``ledger`` from here on, and what the kernel says of processes, which are asleep at both ends."""

    def __init__(self, traced: Traced, *pids: int) -> None:
        self._traced, self._pids = traced, pids
        traced.collect()
        self._before = {pid: schedstat(pid) for pid in pids}
        self._switched = {pid: switches(pid) for pid in pids}

    def close(self) -> None:
        # Asleep again, so that what the kernel counts stands still while it is read.
        time.sleep(0.05)
        self.windows = self._traced.collect()
        after = {pid: schedstat(pid) for pid in self._pids}
        self.switches = {pid: switches(pid) - self._switched[pid] for pid in self._pids}
        self.kernel = {pid: np.subtract(after[pid], self._before[pid]).tolist() for pid in self._pids}

    def sums(self, pid: int, names: tuple[str, ...]) -> int:
        rows = self.windows["ledger.time"].rows
        return sum(int(rows[name][rows["pid"] == pid].sum()) for name in names)

    def account(self, pid: int) -> Account:
        summary = Summary()
        for table in ("time", "taken"):
            summary.add(self.windows[f"ledger.{table}"])
        asked = Source(filters=(("pid", str(pid)),))
        return next(one for one in accounts(summary, asked) if one.pid == pid)

    def agrees(self, pid: int, *, together: bool = False, used_ns: int | None = None) -> None:
        """Run time and run delay are the kernel's to 1 % of both, but for switches that it did not show.

        So is ``used_ns``, which its cgroup says of it.

        A wake-up that will preempt a task has the kernel keep the time of that moment for the switch
        (rq_clock_skip_update): the interrupts that go on until then are charged as delay, and to a task that works
        long in a system call all that it does there. For such ones compare the two ``together``.
        """
        told = [self.sums(pid, RUN) - self.sums(pid, ("stall_asleep_ns",)), self.sums(pid, DELAY)]
        kernel = self.kernel[pid]
        slack_ns = 0.01 * sum(kernel) + self.sums(pid, ("unknown_ns",)) + 100_000
        if together:
            told, kernel = [sum(told)], [sum(kernel)]
        for told_ns, kernel_ns in zip(told, kernel, strict=True):
            assert abs(told_ns - kernel_ns) <= slack_ns, (told, kernel, slack_ns)
        assert used_ns is None or abs(told[0] - used_ns) <= slack_ns, (told, used_ns, slack_ns)
        # Whoever leaves its CPU waits for one before it is there again; a switch that was not shown spoils two waits.
        waits, unmatched = self.sums(pid, ("waits",)), self.windows["ledger.time"].losses["unmatched"]
        assert abs(waits - self.switches[pid]) <= 0.01 * self.switches[pid] + 2 * unmatched + 2

    def adds_up(self, pid: int) -> None:
        """The parts of a process of one thread are its wall time, and those who took its waits are its waits."""
        rows = self.windows["ledger.time"].rows
        (row,) = rows[rows["pid"] == pid]
        whole_ns = self.sums(pid, (*RUN, *DELAY, *ASLEEP, "unknown_ns"))
        assert whole_ns == pytest.approx(int(row["wall_ns"]), rel=0.01)
        taken = self.windows["ledger.taken"].rows
        # What was written over on a crowded machine before it was read is nobody's, and counted.
        earlier_ns = int(taken["ns"][taken["kind"] == b"earlier"].sum())
        unread_ns = self.windows["ledger.time"].losses["earlier_ns"] - earlier_ns
        taken = taken[taken["pid"] == pid]
        by_others_ns = int(row["waiting_ns"] - row["wait_softirq_ns"] - row["wait_hardirq_ns"])
        told_ns = int(taken["ns"][np.isin(taken["kind"], [b"task", b"own", b"idle", b"earlier"])].sum())
        # Small ones are told together, of whatever kind, where very many processes run.
        rest_ns = int(taken["ns"][taken["kind"] == b"rest"].sum()) + unread_ns
        assert 0.999 * by_others_ns - 1000 - rest_ns <= told_ns <= 1.001 * by_others_ns + 1000


def taken_by(account: Account, cause: str) -> int:
    return sum(one.ns for one in account.taken if one.cause == cause)


def test_two_that_share_a_cpu_take_it_from_each_other(attach: Callable[..., Traced]) -> None:
    with Task(SPIN, 1.5, cpu=CPU) as one, Task(SPIN, 1.5, cpu=CPU) as other:
        books = Books(attach("ledger"), one.pid, other.pid)
        one.go()
        other.go()
        one.result()
        other.result()
        books.close()
    lost = books.windows["ledger.time"].losses
    assert lost["collided"] == lost["full"] == lost["unsettled"] == 0 and {"unmatched", "earlier_ns"} <= lost.keys()
    for mine, theirs in ((one.pid, other.pid), (other.pid, one.pid)):
        books.agrees(mine)
        books.adds_up(mine)
        rows = books.windows["ledger.taken"].rows
        rows = rows[(rows["pid"] == mine) & (rows["kind"] == b"task") & (rows["number"] == theirs)]
        # All that the other one ran, but for what it ran before this one began and after it had ended.
        assert int(rows["ns"].sum()) == pytest.approx(books.kernel[theirs][0], rel=0.3)
        assert books.account(mine).cause == "neighbour"


#: Busy until there is a file.
UNTIL = """
while not os.path.exists(sys.argv[1]):
    spin(0.005)
"""

#: Many that each run for a moment.
CROWD = """
for _ in range(150):
    if not os.fork():
        spin(0.002)
        os._exit(0)
for _ in range(150):
    os.wait()
"""


def test_more_holders_than_there_are_cells_are_all_known(attach: Callable[..., Traced], tmp_path: Path) -> None:
    """A busy task waits for 150 others on its CPU, of which the CPU's cells can hold 64."""
    with Task(UNTIL, tmp_path / "over", cpu=CPU) as task, Task(CROWD, cpu=CPU) as crowd:
        books = Books(attach("ledger", FILTER_TGID=task.pid), task.pid)
        task.go()
        crowd.go()
        crowd.result()
        (tmp_path / "over").touch()
        task.result()
        books.close()
    books.adds_up(task.pid)
    rows = books.windows["ledger.taken"].rows
    holders = rows["number"][(rows["pid"] == task.pid) & (rows["kind"] == b"task")]
    assert len(np.unique(holders)) > 100 and books.windows["ledger.time"].losses["full"] == 0


def test_a_crowd_of_short_ones_has_its_name_in_a_long_wait_too(
    attach: Callable[..., Traced],
    cpu_group: Callable[[str], CpuGroup],  # noqa: F811
    tmp_path: Path,
) -> None:
    """A task waits while 150 others take turns, of which a block of stays can hold eight."""
    group = cpu_group("crowd")
    group.weigh(100)
    with Task(UNTIL, tmp_path / "over", cpu=CPU) as task, Task(CROWD, cpu=CPU) as crowd:
        group.add(crowd.pid)
        books = Books(attach("ledger", FILTER_TGID=task.pid), task.pid)
        task.go()
        crowd.go()
        crowd.result()
        (tmp_path / "over").touch()
        task.result()
        books.close()
    books.adds_up(task.pid)
    account = books.account(task.pid)
    assert account.taken[0].what.endswith(f"(in {group.name})"), account.taken
    unknown_ns = sum(one.ns for one in account.taken if one.what == "not known whom")
    assert unknown_ns < 0.1 * account.taken[0].ns, account.taken


#: One of two ranks: works for so many seconds of CPU time, says so to the other and waits for it, again and again.
RANK = """
mine, other = (os.open(path, os.O_RDWR) for path in sys.argv[1:3])
work, rounds = float(sys.argv[3]), int(sys.argv[4])
for _ in range(rounds):
    until = time.thread_time() + work
    while time.thread_time() < until:
        pass
    os.write(other, b"x")
    os.read(mine, 1)
"""


def test_a_barrier_loop_knows_its_thief_and_what_it_took(
    attach: Callable[..., Traced],
    cpu_group: Callable[[str], CpuGroup],  # noqa: F811
    tmp_path: Path,
) -> None:
    """Rank 1 has ten times the work of rank 0, so that it nearly always wants the CPU that a thief has half of."""
    ends = [tmp_path / name for name in ("first", "second")]
    for end in ends:
        os.mkfifo(end)
    first = Task(RANK, *ends, 0.001, 60, cpu=0)
    second = Task(RANK, *reversed(ends), 0.01, 60, cpu=CPU)
    light, heavy, crowd = cpu_group("rank-0"), cpu_group("rank-1"), cpu_group("thief")
    with first, second, Task(SPIN, 1.0, cpu=CPU) as thief:
        # Whatever else runs here: rank 0 gets what it wants, rank 1 and the thief have nearly all of their CPU.
        for group, task, times in ((light, first, 100), (heavy, second, 20), (crowd, thief, 20)):
            group.weigh(times)
            group.add(task.pid)
        books = Books(attach("ledger"), first.pid, second.pid, thief.pid)
        for task in (first, second, thief):
            task.go()
        for task in (first, second, thief):
            task.result()
        books.close()
    books.agrees(second.pid)
    account = books.account(second.pid)
    stolen_ns = books.kernel[thief.pid][0]
    mine = [one for one in account.taken if one.what.endswith(f"(in {crowd.name})")]
    assert len(mine) == 1 and mine[0] is account.taken[0], account.taken
    assert mine[0].ns == pytest.approx(stolen_ns, rel=0.1)
    assert account.cause == "neighbour"
    said = sentence(account, Source())
    assert f"(in {crowd.name}) " in said and said.endswith("A noisy neighbour: no quota holds it back."), said


def test_a_quota_is_no_neighbour_and_a_neighbour_no_quota(
    attach: Callable[..., Traced],
    cpu_group: Callable[[str], CpuGroup],  # noqa: F811
) -> None:
    """A task at its quota beside a busy one: while it may not run, the other one has the CPU, and takes nothing."""
    small, noisy = cpu_group("quota"), cpu_group("noisy")
    small.quota(0.2)
    with Task(SPIN, 2, cpu=CPU) as held, Task(SPIN, 2, cpu=CPU) as neighbour:
        for group, task in ((small, held), (noisy, neighbour)):
            group.weigh(20)
            group.add(task.pid)
        books = Books(attach("ledger"), held.pid, neighbour.pid)
        before_ns, used_before_ns = small.throttled_ns(), small.used_ns()
        held.go()
        neighbour.go()
        held.result()
        neighbour.result()
        books.close()
        by_kernel_ns, used_ns = small.throttled_ns() - before_ns, small.used_ns() - used_before_ns
    for pid, used in ((held.pid, used_ns), (neighbour.pid, None)):
        books.agrees(pid, used_ns=used)
        books.adds_up(pid)
    by_quota_ns = books.sums(held.pid, ("throttled_ns",))
    # Before v6.6 the run queue's sum leaves out the time of interrupts, of which an emulated machine has many.
    whole = b"throttled_clock_self_time" in Path("/sys/kernel/btf/vmlinux").read_bytes()
    assert by_quota_ns == pytest.approx(by_kernel_ns, rel=0.01 if whole else 0.1)
    assert by_quota_ns > 1e9
    account = books.account(held.pid)
    assert account.cause == "quota"
    assert sentence(account, Source()).endswith("Its own quota holds it back, not a neighbour.")
    # The other one lost time to this one, and to whatever else runs here, but none to a quota.
    assert books.sums(neighbour.pid, ("throttled_ns",)) == 0
    assert taken_by(books.account(neighbour.pid), "quota") == 0
    assert books.account(neighbour.pid).cause == "neighbour"


def test_softirqs_are_told_by_vector_with_the_time_they_took(attach: Callable[..., Traced]) -> None:
    """The receipt of a packet that takes 20 ms, in the sender's own context: loopback."""
    with Holder(0.02) as slow:
        traced = attach("ledger", FILTER_TGID=os.getpid())
        traced.collect()
        for _ in range(10):
            slow.hold_softirq()
        windows = traced.collect()
    rows = windows["ledger.taken"].rows
    (received,) = rows[(rows["kind"] == b"softirq") & (rows["name"] == b"NET_RX")]
    (times,) = windows["ledger.time"].rows
    assert times["pid"] == os.getpid()
    assert int(received["ns"]) == pytest.approx(10 * 20e6, rel=0.1)
    assert int(times["softirq_ns"]) == int(rows["ns"][rows["kind"] == b"softirq"].sum())


def test_interrupts_are_told_by_line_and_vector(attach: Callable[..., Traced]) -> None:
    """A busy task has the timer's interrupts over it: as many as its CPU has while it runs, and as long."""
    with Task(SPIN, 1.0, cpu=CPU) as task:
        books = Books(attach("ledger", "hardirq", FILTER_TGID=task.pid), task.pid)
        task.go()
        task.result()
        books.close()
    rows = books.windows["ledger.taken"].rows
    rows = rows[(rows["pid"] == task.pid) & np.isin(rows["kind"], [b"line", b"vector"])]
    assert int(rows["ns"].sum()) == books.sums(task.pid, ("hardirq_ns",))
    timers = rows[(rows["kind"] == b"vector") & (rows["number"] == 0xEC)]
    on_cpu = books.windows["hardirq.run"].rows
    on_cpu = on_cpu[(on_cpu["cpu"] == CPU) & (on_cpu["name"] == b"LOC")]
    assert 0 < int(timers["ns"].sum()) <= int(on_cpu["sum"].sum())


#: Reads a file of more than its memory cgroup may hold, from the disk; tells how long that took.
READ = """
start = time.monotonic_ns()
file = os.open(sys.argv[1], os.O_RDONLY)
while os.read(file, 1 << 20):
    pass
tell(time.monotonic_ns() - start)
"""


def test_memory_and_disk_are_told_apart(
    attach: Callable[..., Traced],
    small_group: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(bytes(96 << 20))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with Task(READ, path, cpu=CPU) as reader:
        (small_group / "cgroup.procs").write_text(str(reader.pid))
        books = Books(attach("ledger"), reader.pid)
        reader.go()
        took_ns = reader.result()
        used = reader.result()
        books.close()
        (small_group.parent / "cgroup.procs").write_text(str(reader.pid))
    books.agrees(reader.pid, together=True)
    books.adds_up(reader.pid)
    disk_ns, reclaim_ns = books.sums(reader.pid, ("disk_ns",)), books.sums(reader.pid, ("reclaim_ns",))
    # When it neither ran nor waited for a CPU it slept, and for nothing but the disk.
    assert disk_ns == pytest.approx(took_ns - used["run_ns"] - used["wait_ns"], rel=0.3, abs=5e6)
    assert disk_ns > 5e6
    # Four times what fits: 72 MB of pages had to go again, at some 50 ns each.
    assert 200_000 < reclaim_ns < books.kernel[reader.pid][0]
