"""Intervals as differences of snapshots: tables, losses told once, and time that is shared out without a rest."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.collect import collector as collecting
from tracer.collect.collector import Collector
from tracer.collect.snapshots import Snapshots
from tracer.collect.tables import TableRows
from tracer.histogram import SLOTS, slot_of
from tracer.kernel.job import MapShape
from tracer.layouts import layout
from tracer.probe import Clock, Events, Loss, Map, Probe, Table, Tracepoint
from tracer.probes._holders import Holders, holders
from tracer.probes.cpustate import _derive

ROW = np.dtype(
    [("key", "u8"), ("calls", "u4"), ("limit", layout("event", "event_limit")), ("wait", layout("hist", "hist"))],
    align=True,
)
CPU_ROW = layout("cpustate", "cpu_row")


def shape(**axes: int) -> MapShape:
    return MapShape(ROW, tuple(axes.items()))


def live(rows: int) -> np.ndarray:
    return np.zeros(rows, ROW)


def add(row: np.void, *values_ns: int) -> None:
    """Count values as the kernel side does."""
    for value in values_ns:
        row["wait"]["sum"] += np.uint64(value)
        row["wait"]["slots"][slot_of(value)] += np.uint32(1)


class Live:
    """A live map that is snapshotted before and after a change."""

    def __init__(self, rows: np.ndarray, *tables: Table) -> None:
        self.rows = rows
        self.snapshots = Snapshots(rows, tables or (HISTOGRAM,))

    def __enter__(self) -> np.ndarray:
        self.snapshots.take()
        return self.rows

    def __exit__(self, *_: object) -> None:
        self.snapshots.take()


HISTOGRAM = Table("wait", "", map="rows", by=("cpu",), histogram="wait")


def test_a_histogram_is_what_was_added_between_two_snapshots() -> None:
    rows = live(3)
    add(rows[1], 5, 5, 700)
    with (changed := Live(rows)) as now:
        add(now[1], 700, 90_000)
    (row,) = TableRows(HISTOGRAM, shape(cpu=3), changed.snapshots).read()
    assert (row["cpu"], row["sum"]) == (1, 90_700)
    assert dict(zip(*np.unique(slot_of([700, 90_000]), return_counts=True), strict=True)) == {
        slot: count for slot, count in enumerate(row["slots"].tolist()) if count
    }


def test_axes_are_unravelled_and_an_unnamed_one_dropped() -> None:
    with (changed := Live(live(12))) as now:
        add(now[2 * 4 + 3], 10)
        add(now[1 * 4 + 0], 10)
    table = Table("t", "", by=("cpu", "vector"), histogram="wait")
    rows = TableRows(table, shape(cpu=3, VECTORS=4), changed.snapshots).read()
    assert list(zip(rows["cpu"].tolist(), rows["vector"].tolist(), strict=True)) == [(1, 0), (2, 3)]
    rows = TableRows(
        Table("t", "", by=("cpu", ""), histogram="wait"), shape(cpu=3, VECTORS=4), changed.snapshots
    ).read()
    assert rows.dtype.names == ("cpu", "sum", "slots")
    assert rows["cpu"].tolist() == [1, 2]


def test_cells_of_32_bits_may_wrap() -> None:
    rows = live(1)
    rows["calls"] = 2**32 - 2
    rows["wait"]["slots"][0, 7] = 2**32 - 1
    rows["wait"]["sum"] = 2**64 - 10
    with (changed := Live(rows)) as now:
        now["calls"] = 3
        now["wait"]["slots"][0, 7] = 1
        now["wait"]["sum"] = 90
    table = Table("t", "", by=("cpu",), counters=("calls",), histogram="wait")
    (row,) = TableRows(table, shape(cpu=1), changed.snapshots).read()
    assert (row["calls"], row["slots"][7], row["sum"]) == (5, 2, 100)


def test_a_row_given_to_another_key_counts_on() -> None:
    table = Table("t", "", by=("",), keys=("key",), counters=("calls",), histogram="wait", used="key")
    rows = live(4)
    rows[1]["key"], rows[1]["calls"] = 11, 100
    add(rows[1], *[40] * 100)
    with (changed := Live(rows, table)) as now:
        now[1]["key"] = 22
        now[1]["calls"] += 3
        add(now[1], 40, 40, 40)
    (row,) = TableRows(table, shape(ROWS=4), changed.snapshots).read()
    assert (row["key"], row["calls"], row["sum"], row["slots"].sum()) == (22, 3, 120, 3)


def test_a_peak_is_of_one_interval() -> None:
    table = Table("t", "", by=("cpu",), counters=("calls",), peaks=("key",))
    rows = live(2)
    rows["key"] = 9
    with (changed := Live(rows, table)) as now:
        now["calls"], now["key"][1] = 1, 4
    assert TableRows(table, shape(cpu=2), changed.snapshots).read()["key"].tolist() == [0, 4]
    assert rows["key"].tolist() == [0, 0]


def test_rows_never_given_out_are_not_copied() -> None:
    rows = live(1000)
    rows["calls"] = 5  # nobody's
    table = Table("t", "", by=("",), keys=("key",), counters=("calls",), used="key")
    with (changed := Live(rows, table)) as now:
        now[7]["key"], now[7]["calls"] = 1, 9
    assert changed.snapshots.rows.tolist() == [7]
    assert not changed.snapshots.after["calls"][np.arange(1000) != 7].any()
    assert TableRows(table, shape(ROWS=1000), changed.snapshots).read()["calls"].tolist() == [9]


def test_members_of_members_become_columns() -> None:
    table = Table("t", "", by=("cpu",), counters=("limit.suppressed",), gauges=("limit.longest_ns",))
    rows = live(2)
    rows["limit"]["suppressed"] = 10
    with (changed := Live(rows)) as now:
        now["limit"]["suppressed"][1] = 14
        now["limit"]["longest_ns"] = 99
    (row,) = TableRows(table, shape(cpu=2), changed.snapshots).read()
    assert row.dtype.names == ("cpu", "limit_suppressed", "limit_longest_ns")
    assert row.tolist() == (1, 4, 99)
    assert changed.snapshots.was["limit.suppressed"].tolist() == [10, 10]
    assert changed.snapshots.now["limit.suppressed"].tolist() == [10, 14]


def test_zeros_alone_are_counted_too() -> None:
    with (changed := Live(live(2))) as now:
        add(now[1], 0, 0)
    (row,) = TableRows(HISTOGRAM, shape(cpu=2), changed.snapshots).read()
    assert (row["cpu"], row["sum"], row["slots"][0], row["slots"].sum()) == (1, 0, 2, 2)


def test_nothing_changed_is_an_empty_table_of_the_same_layout() -> None:
    rows = live(2)
    add(rows[0], 5)
    with (changed := Live(rows)):
        pass
    none = TableRows(HISTOGRAM, shape(cpu=2), changed.snapshots).read()
    assert len(none) == 0
    assert (
        none.dtype
        == TableRows(HISTOGRAM, shape(cpu=2), changed.snapshots).dtype
        == np.dtype([("cpu", "u4"), *none.dtype.descr[1:]])
    )
    assert none.dtype["slots"].shape == (SLOTS,)


def test_snapshots_follow_each_other_without_a_gap() -> None:
    snapshots = Snapshots(live(1))
    ends = []
    for _ in range(3):
        snapshots.take()
        assert snapshots.start_ns <= snapshots.end_ns
        ends.append((snapshots.start_ns, snapshots.end_ns))
    assert [end for _, end in ends[:-1]] == [start for start, _ in ends[1:]]


class FakeSession:
    """As much of a session as a collector asks for."""

    def __init__(self, probe: Probe, rows: np.ndarray) -> None:
        self.probes = [probe]
        self.shapes = {"rows": MapShape(rows.dtype, (("cpu", len(rows)),))}
        self.pending: list[np.ndarray] = []
        self._rows = rows

    def array(self, name: str) -> np.ndarray:
        assert name == "rows"
        return self._rows

    def events(self) -> Iterator[tuple[Probe, Events, np.ndarray]]:
        table = next(table for table in self.probes[0].tables if isinstance(table, Events))
        yield from ((self.probes[0], table, raw) for raw in self.pending)
        self.pending = []


def test_a_collector_tells_losses_once_and_events_of_this_interval_only() -> None:
    probe = Probe(
        name="cpustate",
        summary="",
        tier="light",
        hooks=(Tracepoint("a:b"),),
        maps=(Map("rows", "row", ("cpu",)),),
        tables=(
            HISTOGRAM,
            Table("calls", "", map="rows", by=("cpu",), counters=("calls",)),
            Events("worst", "", layout="event"),
        ),
        losses=(
            Loss("suppressed", "rows", "limit.suppressed", ""),
            Loss("suppressed", "rows", "limit.sent", ""),
            Loss("slept", "rows", "limit.second", ""),
        ),
    )
    rows = live(2)
    rows["calls"] = 50
    rows["limit"]["suppressed"] = [2**64 - 1, 0]
    session = FakeSession(probe, rows)
    event = np.zeros(2, layout("event", "event"))
    session.pending = [event]  # from before: dropped
    collector = Collector(session, names=None)  # type: ignore[arg-type]
    rows["calls"][1] += 1
    rows["limit"]["suppressed"] = [1, 3]
    rows["limit"]["sent"] = 4
    session.pending = [event[:1]]
    wait, calls, worst = collector.collect()
    assert [window.table for window in (wait, calls, worst)] == ["wait", "calls", "worst"]
    assert dict(wait.losses) == {"suppressed": 2 + 3 + 4 + 4, "slept": 0}
    assert not calls.losses and not worst.losses
    assert (len(wait.rows), calls.rows.tolist(), len(worst.rows)) == (0, [(1, 1)], 1)
    again = collector.collect()
    assert [len(window.rows) for window in again] == [0, 0, 0]
    assert again[2].rows.dtype == worst.rows.dtype
    assert again[0].start_ns == wait.end_ns and again[2].start_ns == worst.end_ns
    collector.close()


class Switched:
    """CPUs as hotplug leaves them."""

    now = frozenset({0, 1, 2})

    def read(self) -> frozenset[int]:
        return self.now

    def close(self) -> None:
        pass


def test_a_cpu_that_was_offline_is_not_idle_and_one_that_comes_back_gets_a_clock(monkeypatch) -> None:
    monkeypatch.setattr(Switched, "now", Switched.now)
    monkeypatch.setattr(collecting.cpus, "OnlineCpus", Switched)
    monkeypatch.setattr(collecting.cpus, "undisturbed", set)
    probe = Probe(
        name="cpustate",
        summary="",
        tier="light",
        hooks=(Clock(5),),
        maps=(Map("rows", "cpu_row", ("cpu",)),),
        tables=(Table("time", "", map="rows", by=("cpu",), derive=_derive),),
    )
    rows = np.zeros(3, CPU_ROW)
    rows["switches"], rows["stays"]["started_ns"] = 1, 500
    session: Any = FakeSession(probe, rows)
    session.options = SimpleNamespace(cpus=None)
    asked: list[int] = []
    session.add_clocks = lambda cpu: asked.append(cpu) or len(asked) > 1  # only the first time in vain
    session.events = lambda: iter(())
    missed: list[str] = []
    session.programs = SimpleNamespace(miss=missed.append)
    collector = Collector(session, names=None)  # type: ignore[arg-type]
    told = []
    for now in ({0, 1, 2}, {0, 1}, {0, 1}, {0, 1, 2}, {0, 2}, {0, 1, 2}):
        Switched.now = frozenset(now)
        (time,) = collector.collect()
        told.append((time.rows["cpu"].tolist(), time.losses["offline"], time.losses["unclocked"]))
    offline = [([0, 1], 1, 0), ([0, 1], 1, 0), ([0, 1], 1, 1), ([0, 2], 1, 0), ([0, 2], 1, 0)]
    assert told == [([0, 1, 2], 0, 0), *offline]
    assert asked == [2, 1] and missed == ["CPUs came online"] * 2
    collector.close()


def test_the_cpus_online_are_read_again_each_time(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(collecting.cpus, "_SYS", tmp_path)
    (tmp_path / "online").write_text("0-3\n")
    online = collecting.cpus.OnlineCpus()
    assert online.read() == {0, 1, 2, 3}
    (tmp_path / "online").write_text("0,2-3\n")
    assert online.read() == {0, 2, 3}
    online.close()


# Time of a CPU


class Cpu:
    """One CPU as cpustate's programs account for it, and what really happened (``spent``)."""

    def __init__(self, now: int) -> None:
        self.row = np.zeros(1, CPU_ROW)
        self.now = now
        self.spent = {"running_ns": 0, "idle_ns": 0, "softirq_ns": 0, "hardirq_ns": 0}
        self.pid = 1
        self._put("switches", 0)
        self.switch(1)

    def __getitem__(self, name: str) -> int:
        return int(self.row[name][0])

    def _put(self, name: str, value: int) -> None:
        self.row[name][0] = value

    def run(self, ns: int) -> None:
        self.now += ns
        part = "running_ns" if self.pid else "idle_ns"
        part = "softirq_ns" if self["softirq_entered_ns"] else part
        self.spent["hardirq_ns" if self["hardirq_entered_ns"] else part] += ns

    def switch(self, pid: int) -> None:
        if self["hardirq_entered_ns"] or self["softirq_entered_ns"]:
            return
        stay = self.row["stays"][0][self["switches"] % 32]
        if stay["started_ns"]:
            stolen = self["softirq_ns"] + self["hardirq_ns"] - int(stay["softirq_ns"]) - int(stay["hardirq_ns"])
            part = "running_ns" if stay["pid"] else "idle_ns"
            self._put(part, self[part] + self.now - int(stay["started_ns"]) - stolen)
        stay = self.row["stays"][0][(self["switches"] + 1) % 32]
        stay["started_ns"], stay["pid"] = self.now, pid
        stay["softirq_ns"], stay["hardirq_ns"] = self["softirq_ns"], self["hardirq_ns"]
        self._put("switches", self["switches"] + 1)
        self.pid = pid

    def softirq(self) -> None:
        """Enter one, or leave it."""
        if self["hardirq_entered_ns"]:
            return
        if not self["softirq_entered_ns"]:
            self._put("softirq_hardirq_ns", self["hardirq_ns"])
            self._put("softirq_entered_ns", self.now)
            return
        inside = self["hardirq_ns"] - self["softirq_hardirq_ns"]
        self._put("softirq_ns", self["softirq_ns"] + self.now - self["softirq_entered_ns"] - inside)
        self._put("softirq_entered_ns", 0)

    def hardirq(self) -> None:
        if not self["hardirq_entered_ns"]:
            self._put("hardirq_entered_ns", self.now)
            return
        self._put("hardirq_ns", self["hardirq_ns"] + self.now - self["hardirq_entered_ns"])
        self._put("hardirq_entered_ns", 0)


PARTS = ("running_ns", "idle_ns", "softirq_ns", "hardirq_ns")


def shares(cpu: Cpu, before: np.ndarray, start_ns: int) -> dict[str, int]:
    rows, losses = _derive(before, cpu.row, start_ns, cpu.now)
    assert losses == {"clamped": 0}
    return {part: int(rows[0][part]) for part in PARTS}


def test_a_stay_that_never_ends_is_seen() -> None:
    cpu = Cpu(1000)
    before, start = cpu.row.copy(), cpu.now
    cpu.run(500)
    assert shares(cpu, before, start) == {"running_ns": 500, "idle_ns": 0, "softirq_ns": 0, "hardirq_ns": 0}


def test_an_open_softirq_and_an_interrupt_in_it_are_told_apart() -> None:
    cpu = Cpu(1000)
    cpu.switch(0)
    before, start = cpu.row.copy(), cpu.now
    cpu.run(100)
    cpu.softirq()
    cpu.run(20)
    cpu.hardirq()
    cpu.run(7)
    assert shares(cpu, before, start) == {"running_ns": 0, "idle_ns": 100, "softirq_ns": 20, "hardirq_ns": 7}
    middle, start = cpu.row.copy(), cpu.now
    cpu.run(3)
    cpu.hardirq()
    cpu.run(1)
    assert shares(cpu, middle, start) == {"running_ns": 0, "idle_ns": 0, "softirq_ns": 1, "hardirq_ns": 3}


def test_until_its_first_switch_a_cpu_ran_what_that_took_away() -> None:
    before = np.zeros(4, CPU_ROW)
    before["hardirq_ns"][2] = 10
    after = before.copy()
    after["switches"][1:], after["stays"]["started_ns"][1:, 1] = 1, 500
    after["hardirq_ns"][2], after["stays"]["hardirq_ns"][2, 1] = 30, 30
    after["first_pid"][2] = 7
    after["running_ns"][3] = 10_000  # of long ago: the row before is no copy of this CPU's
    rows, losses = _derive(before, after, 400, 900)
    assert rows["cpu"].tolist() == [1, 2] and losses == {"clamped": 0}
    assert [rows[0][part] for part in PARTS] == [0, 500, 0, 0]
    assert [rows[1][part] for part in PARTS] == [80, 400, 0, 20]


MS = 1_000_000


@pytest.mark.parametrize(("late_ns", "clamped"), [(MS // 2, 0), (10 * MS, 1)])
def test_what_ran_while_rows_were_read_is_told_in_the_next_interval(late_ns: int, clamped: int) -> None:
    cpu = Cpu(10**12)
    cpu.switch(0)
    cpu.softirq()
    cpu.run(5 * MS)
    before, copied = cpu.row.copy(), cpu.now
    cpu.softirq()  # it ended right after the copy, but was taken to last until the interval's end
    cpu.run(late_ns)
    start = copied + late_ns
    cpu.run(20 * MS)
    rows, losses = _derive(before, cpu.row, start, cpu.now)
    assert losses == {"clamped": clamped}
    assert rows[0]["softirq_ns"] == rows[0]["running_ns"] == rows[0]["hardirq_ns"] == 0
    assert rows[0]["idle_ns"] == cpu.now - start == 20 * MS


class Torn:
    """A row whose program writes while it is copied: ``copies`` looks find it different, odd or moved."""

    def __init__(self, rows: np.ndarray, copies: int) -> None:
        self.rows, self.left = rows, copies

    def __getitem__(self, place: int) -> int:
        self.left -= 1
        if self.left >= 0:
            self.rows["calls"] += 1
            self.rows["sum"] = self.rows["calls"]
            return 1 if self.left % 3 else 2 * self.left
        return 2


@pytest.mark.parametrize(("looks", "stale"), [(0, 0), (7, 0), (10**6, 1)])
def test_a_row_is_copied_as_it_was_at_one_moment_or_stays_as_it_was(looks: int, stale: int) -> None:
    rows = np.zeros(1, [("calls", "u8"), ("sum", "u8"), ("writes", "u4")])
    snapshots = Snapshots(rows, [Table("time", "", map="rows", by=("cpu",), writes=("writes",))])
    rows["calls"] = rows["sum"] = 5
    snapshots.take()
    assert snapshots.stale == 0 and snapshots.after["calls"] == 5
    torn: Any = Torn(rows, looks)
    snapshots._writes = [torn]
    snapshots.take()
    assert snapshots.stale == stale
    assert snapshots.after["calls"] == (5 if stale else rows["calls"])


STEPS = st.lists(st.tuples(st.integers(0, 10**9), st.sampled_from(["0", "5", "6", "softirq", "hardirq", "look"])))


@given(STEPS)
def test_the_parts_are_the_truth_and_sum_up_to_the_wall_time(steps: list[tuple[int, str]]) -> None:
    cpu = Cpu(10**12)
    before, start, spent = cpu.row.copy(), cpu.now, dict(cpu.spent)
    for ns, step in [*steps, (1, "look")]:
        cpu.run(ns)
        if step.isdigit():
            cpu.switch(int(step))
        elif step != "look":
            getattr(cpu, step)()
        else:
            found = shares(cpu, before, start)
            assert found == {part: cpu.spent[part] - spent[part] for part in PARTS}
            assert sum(found.values()) == cpu.now - start
            before, start, spent = cpu.row.copy(), cpu.now, dict(cpu.spent)


# Who held a CPU


def log(*stays: tuple[int, ...], now: tuple[int, int] = (0, 0), switches: int = 0) -> np.void:
    """Return a CPU's row with these stays, oldest first: (start, pid[, softirq_ns, hardirq_ns at its start])."""
    row = np.zeros((), CPU_ROW)
    last = switches or len(stays)
    row["switches"] = last
    row["softirq_ns"], row["hardirq_ns"] = now
    for place, stay in enumerate(reversed(stays)):
        slot = row["stays"][(last - place) % 32]
        slot["started_ns"], slot["pid"], slot["tgid"] = stay[0], stay[1], stay[1] + 1000
        slot["comm"] = b"task%d" % stay[1]
        slot["softirq_ns"], slot["hardirq_ns"] = stay[2:] or (0, 0)
    logged: np.void = row.reshape(1)[0]
    return logged


def test_a_hog() -> None:
    assert holders(log((50, 5), (900, 9)), 100, 1000, skip_pid=9) == Holders(
        pid=5, tgid=1005, comm=b"task5", holder_ns=800, tasks=1, task_ns=800, covered_ns=800
    )


def test_a_crowd_and_the_idle_task() -> None:
    turns = [(1000 + 10 * turn, 20 + turn % 6) for turn in range(12)]
    found = holders(log(*turns, (1120, 0), (1150, 20)), 1000, 1155)
    assert (found.tasks, found.pid, found.holder_ns) == (6, 20, 25)
    assert (found.task_ns, found.idle_ns, found.covered_ns) == (125, 30, 155)


def test_interrupts_are_not_the_tasks_time() -> None:
    found = holders(log((100, 5, 1000, 2000), (200, 6, 1040, 2005), now=(1041, 2005)), 100, 300)
    assert (found.pid, found.holder_ns) == (6, 99)
    assert (found.softirq_ns, found.hardirq_ns, found.task_ns) == (41, 5, 154)


def test_an_interrupt_that_has_not_ended_is_not_the_time_of_the_task_under_it() -> None:
    cpu = log((1000, 7, 0, 0))
    cpu["softirq_entered_ns"] = 1010
    found = holders(cpu, 1000, 1200)
    assert (found.pid, found.holder_ns, found.softirq_ns, found.hardirq_ns) == (7, 10, 190, 0)
    cpu["hardirq_entered_ns"] = 1150
    found = holders(cpu, 1000, 1200)
    assert (found.holder_ns, found.softirq_ns, found.hardirq_ns) == (10, 140, 50)


def test_of_a_stay_that_lies_partly_inside_interrupts_count_in_proportion() -> None:
    found = holders(log((100, 5, 0, 0), (300, 6, 80, 40), now=(80, 40)), 200, 300)
    assert (found.holder_ns, found.softirq_ns, found.hardirq_ns, found.covered_ns) == (40, 40, 20, 100)


def test_what_came_after_the_end_counts_for_nobody() -> None:
    found = holders(log((100, 5, 0, 0), (300, 6, 10, 0), (400, 7, 90, 0), now=(500, 0)), 100, 300)
    assert (found.pid, found.holder_ns, found.softirq_ns, found.tasks) == (5, 190, 10, 1)


def test_a_full_log_reaches_back_as_far_as_it_does() -> None:
    stays = [(1000 + 10 * number, 1 + number % 3) for number in range(32)]
    found = holders(log(*stays, switches=1_000_007), 0, 1320)
    assert (found.covered_ns, found.tasks) == (320, 3)
    assert found.holder_ns == 110


def test_the_one_who_waited_holds_nothing() -> None:
    found = holders(log((100, 5), (150, 9), (160, 5), (190, 9)), 100, 200, skip_pid=9)
    assert (found.pid, found.holder_ns, found.task_ns, found.covered_ns) == (5, 80, 80, 80)
    assert holders(log((100, 9)), 100, 200, skip_pid=9) == Holders()


def test_nothing_known() -> None:
    assert holders(log(), 100, 200) == Holders()
    assert holders(log((500, 5)), 100, 200) == Holders()


@st.composite
def logs(draw: Any) -> np.void:
    """A log of stays in order of time, with interrupt times that may be wrong, and its oldest place half-written."""
    starts = sorted(draw(st.lists(st.integers(1, 10**6), max_size=32)))
    if starts and draw(st.booleans()):
        starts[0] = draw(st.integers(1, 2 * 10**6))
    times = st.integers(0, 10**6)
    stays = [(start, draw(st.integers(0, 4)), draw(times), draw(times)) for start in starts]
    return log(*stays, now=(draw(times), draw(times)), switches=draw(st.integers(len(stays) or 1, 10**6)))


@given(logs(), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(-1, 4))
def test_shares_are_never_negative_nor_more_than_the_interval(
    cpu: np.void, start_ns: int, length_ns: int, skip: int
) -> None:
    found = holders(cpu, start_ns, start_ns + length_ns, skip_pid=skip)
    parts = (found.task_ns, found.idle_ns, found.softirq_ns, found.hardirq_ns)
    assert all(part >= 0 for part in parts)
    assert sum(parts) <= found.covered_ns <= length_ns
    assert 0 <= found.holder_ns <= found.task_ns
    assert found.pid != skip or not found.pid
