"""The ledger in words: what each process lost and to whom; threads' times out of rows that change meanwhile."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.recfunctions import append_fields

from tracer.analysis.ledger import Account, accounts, sentence, takers
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.kernel.longwaits import Interrupted, LongWaits
from tracer.kernel.readers.ledger import _pruned
from tracer.kernel.slowed import Slowed
from tracer.kernel.threadtimes import PARTS, ThreadTimes
from tracer.layouts import constants, layout
from tracer.reports.sections.ledger import ledger
from tracer.reports.state import TopState
from tracer.reports.top import render
from tracer.window import Window

MS, SECOND = 1_000_000, 1_000_000_000
NAMES = [
    *("wall_ns", "running_ns", "waiting_ns", "throttled_ns", "reclaim_ns", "compaction_ns", "wait_softirq_ns"),
    *("wait_hardirq_ns", "softirq_ns", "hardirq_ns", "disk_ns", "mutex_ns", "rwsem_ns", "rtlock_ns", "open_wait_ns"),
    *("futex_ns", "socket_ns", "pipe_ns", "timer_ns"),
]
TIME = np.dtype([("pid", "u4"), ("comm", "S16"), ("cgroup", "S192"), *((name, "u8") for name in NAMES)])
TAKEN = np.dtype([("pid", "u4"), ("kind", "S8"), ("number", "u4"), ("name", "S16"), ("cgroup", "S192"), ("ns", "u8")])
RANK = 37
ASKED = Source(filters=(("pid", str(RANK)),))


def windows(times: dict[str, int], taken: list[tuple], comm: bytes = b"rank", second: int = 0) -> list[Window]:
    """Return an interval, in ms, with one process."""
    row = np.zeros(1, TIME)
    row["pid"], row["comm"], row["cgroup"] = RANK, comm, b"/job"
    for name, ms in {"wall": 1000, **times}.items():
        row[f"{name}_ns"] = int(ms * MS)
    rows = np.array(
        [(RANK, kind, number, name, cgroup, int(ms * MS)) for kind, number, name, cgroup, ms in taken], TAKEN
    )
    span = (second * SECOND, (second + 1) * SECOND)
    return [Window("ledger", "time", *span, row), Window("ledger", "taken", *span, rows)]


def summary(times: dict[str, int], taken: list[tuple], seconds: int = 1, comm: bytes = b"rank") -> Summary:
    """Return a summary of ``seconds`` equal intervals, in ms, with one process."""
    made = Summary()
    for second in range(seconds):
        made.add_interval(windows(times, taken, comm, second))
    return made


def account(times: dict[str, int], taken: list[tuple], source: Source = ASKED, **more) -> Account:
    (found,) = accounts(summary(times, taken, **more), source)
    return found


STOLEN = [
    (b"softirq", 3, b"NET_RX", b"", 9),
    (b"task", 801, b"kubelet", b"/system/kubelet", 6),
    (b"task", 912, b"dcgm-exporter", b"/job", 3),
]


def test_says_what_a_process_lost_and_to_whom():
    said = sentence(account({"running": 982, "waiting": 9, "softirq": 9}, STOLEN, seconds=3), Source())
    assert said == "rank[37] lost 1.8 %: softirq NET_RX 0.9, kubelet (in kubelet) 0.6, dcgm-exporter 0.3."


def test_softirqs_while_it_waited_are_told_by_vector_and_the_rest_of_them_without():
    taken = [(b"softirq", 3, b"NET_RX", b"", 10), (b"wsoftirq", 3, b"NET_RX", b"", 70), (b"task", 5, b"a", b"/job", 10)]
    found = account({"running": 800, "waiting": 100, "wait_softirq": 90, "softirq": 10}, taken)
    assert takers(found) == "softirq NET_RX 8, softirqs while it waited 2, a 1" and found.cause == "interrupts"
    # Recordings of earlier versions don't have them.
    before = account({"running": 800, "waiting": 100, "wait_softirq": 90}, [])
    assert takers(before) == "softirqs while it waited 9"


def test_small_holders_of_one_name_are_told_as_the_largest_of_them():
    many = {(RANK, b"task", pid, b"true", b"/build"): 1000 + pid for pid in range(1500)}
    taken = Counter({**many, (RANK, b"task", 9, b"odd", b"/"): 1})
    assert _pruned(taken) == 1501 - 1024
    assert taken.total() == sum(many.values()) + 1 and len(taken) == 1025
    assert taken[RANK, b"task", 1499, b"true", b"/build"] == 2499 + sum(range(1000, 1476))


def test_others_are_told_once():
    names = {b"a": 90, b"b": 40, b"c": 30, b"d": 20}
    taken = [(b"task", pid, name, b"/job", ms) for pid, (name, ms) in enumerate(names.items(), 5)]
    said = takers(account({"running": 770, "waiting": 230}, [*taken, (b"rest", 0, b"", b"", 50)]))
    assert said == "a 9, b 4, c 3, others 7"


def test_takers_of_one_name_are_one_and_small_ones_the_others():
    taken = [(b"task", pid, b"cc1", b"/builds", 20) for pid in range(4)]
    taken += [(b"line", 30, b"eth0", b"", 15), (b"vector", 0xEC, b"", b"", 12), (b"idle", 0, b"", b"", 7)]
    said = sentence(account({"running": 886, "waiting": 87}, taken), Source())
    assert said.startswith("rank[37] lost 11 %: cc1 (in builds) 8, interrupt eth0 1.5, interrupt LOC 1.2, others 0.7.")


def test_its_own_quota_and_a_neighbour_are_opposites():
    quota = account({"running": 200, "waiting": 100, "throttled": 700}, [(b"task", 5, b"hog", b"/noisy", 100)])
    neighbour = account({"running": 200, "waiting": 800}, [(b"task", 5, b"hog", b"/noisy", 800)])
    own = account({"running": 200, "waiting": 800}, [(b"own", RANK, b"rank", b"/job", 800)])
    assert [one.cause for one in (quota, neighbour, own)] == ["quota", "neighbour", "own"]
    assert sentence(quota, Source()) == (
        "rank[37] lost 80 %: its own quota 70, hog (in noisy) 10. Its own quota holds it back, not a neighbour."
    )
    assert sentence(neighbour, Source()).endswith("A noisy neighbour: no quota holds it back.")
    takers = [(b"task", number, b"hog%d" % number, b"/noisy", 100) for number in range(5)]
    both = account({"running": 200, "waiting": 500, "throttled": 300}, takers)
    assert both.cause == "both" and sentence(both, Source()).endswith("quota holds it back, and so do neighbours.")


def test_threads_that_wanted_to_run_at_once_lose_a_share_of_that():
    eight = account({"running": 7200, "waiting": 800}, [(b"task", 5, b"hog", b"", 800)])
    assert (eight.base_ns, eight.lost) == (8 * SECOND, pytest.approx(0.1))


def test_one_that_lost_nothing_is_not_blamed_on_anybody():
    quiet = account({"running": 1000}, [(b"task", 5, b"hog", b"", 0.5)])
    assert (sentence(quiet, Source()), quiet.cause) == ("", None)


def test_a_wait_that_goes_on_is_said():
    starved = account({"open_wait": 12_000}, [])
    assert sentence(starved, Source()) == "rank[37] had been waiting for a CPU for 12 s at the end."


def test_names_from_the_node_stay_names():
    evil = b"x 99 %: y"
    said = sentence(account({"waiting": 100}, [(b"task", 5, evil, b"/a b", 100)], comm=evil), Source())
    assert said == '"x 99 %: y"[37] lost 10 %: "x 99 %: y" (in "a b") 10. A noisy neighbour: no quota holds it back.'


def with_ranks(*members: tuple[int, int, bytes]) -> Source:
    """Return a source that knows processes by pid, rank and job."""
    source = Source()
    rows = np.zeros(len(members), [("pid", "u4"), ("began_ns", "u8"), ("ended", "u1"), ("rank", "i4"), ("job", "S16")])
    for row, (row["pid"], row["rank"], row["job"]) in zip(rows, members, strict=True):
        row["ended"] = 0
    source.jobs.add(Window("jobs", "members", 0, SECOND, rows))
    return source


def test_ranks_are_called_so():
    source = with_ranks((RANK, 3, b"48213"))
    said = sentence(account({"running": 982, "waiting": 9, "softirq": 9}, STOLEN), source)
    assert said.startswith("rank[37] (rank 3 of job 48213) lost 1.8 %: softirq NET_RX 0.9")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ((5, 4, b"48213"), "other ranks of its job 50. Overcommitted: the job's own ranks share a CPU."),
        ((5, 3, b"48213"), "other processes of its job 50. Overcommitted: the job's own processes share a CPU."),
        ((5, 4, b"48214"), "rank (in job-b) 50. A noisy neighbour: no quota holds it back."),
    ],
)
def test_a_jobs_own_ranks_are_no_neighbours(other: tuple[int, int, bytes], said: str):
    source = with_ranks((RANK, 3, b"48213"), other)
    crowded = account({"running": 500, "waiting": 500}, [(b"task", 5, b"rank", b"/job-b", 500)], source)
    assert sentence(crowded, source) == f"rank[37] (rank 3 of job 48213) lost 50 %: {said}"


def test_what_a_rank_slept_for_is_told():
    times = {"running": 380, "futex": 400, "socket": 200, "timer": 5, "disk": 10, "pipe": 5}
    source = with_ranks((RANK, 3, b"48213"))
    slept = "Asleep 62 % of its time: for other threads 40, on sockets 20, for the disk 1."
    assert sentence(account(times, []), source) == f"rank[37] (rank 3 of job 48213): {slept}"
    stolen = sentence(account({**times, "waiting": 100}, [(b"task", 5, b"hog", b"/noisy", 100)]), source)
    assert stolen.endswith(
        "no quota holds it back. Asleep 56 % of its time: for other threads 36, on sockets 18, for the disk 0.91."
    )
    assert sentence(account(times, []), Source()) == ""
    assert sentence(account({"running": 990, "futex": 10}, []), source) == ""


def test_the_section_has_numbers_and_words():
    section = ledger(summary({"running": 982, "waiting": 9, "softirq": 9}, STOLEN), Source())
    assert section.rows == [["rank[37]", "1.8 %", "982 ms", "9 ms", "0 ns", "9 ms", "0 ns", "0 ns", "0 ns"]]
    assert section.notes[0].startswith("rank[37] lost 1.8 %")
    assert section.notes[-1].startswith("Lowered frequency: not seen on this machine")
    assert ledger(Summary(), Source()) is None


def test_a_jobs_processes_come_first():
    told = Summary()
    for pid, lost in ((5, 500), (RANK, 100)):
        made = windows({"waiting": lost}, [(b"task", 9, b"hog", b"/noisy", lost)])
        for window in made:
            window.rows["pid"] = pid
        told.add_interval(made)
    assert [row[0] for row in ledger(told, Source()).rows] == ["rank[5]", "rank[37]"]
    ranked = ledger(told, with_ranks((RANK, 3, b"48213")))
    assert [row[0] for row in ranked.rows] == ["rank[37] (rank 3 of job 48213)", "rank[5]"]


class Sysfs:
    """A made-up /sys/devices/system/cpu: files by CPU and name, numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, cpu: int, **values: int) -> None:
        for name, value in values.items():
            path = self.folder / f"cpu{cpu}" / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")


def test_heat_and_frequency_are_read_where_the_machine_shows_them(tmp_path: Path):
    sysfs = Sysfs(tmp_path)
    bare = Slowed(range(2), str(tmp_path))
    assert not bare.sees_heat and not bare.sees_speed
    assert [share.tolist() for share in bare.take(SECOND)] == [[0, 0], [0, 0]]
    heat = {
        "thermal_throttle__core_throttle_total_time_ms": 5000,
        "thermal_throttle__package_throttle_total_time_ms": 0,
    }
    for cpu in range(3):
        sysfs.write(cpu, **heat, cpufreq__scaling_cur_freq=2_400_000)
    sysfs.write(0, cpufreq__base_frequency=2_400_000)
    sysfs.write(1, acpi_cppc__nominal_freq=3000)
    slowed = Slowed(range(4), str(tmp_path))
    assert slowed.sees_heat and slowed.sees_speed
    # What was before the start belongs to nobody; CPU 2 does not say what is nominal, CPU 3 is not there.
    hot, slow = slowed.take(SECOND)
    assert hot.tolist() == [0, 0, 0, 0] and slow.tolist() == pytest.approx([0, 0.2, 0, 0])
    sysfs.write(0, thermal_throttle__core_throttle_total_time_ms=5250)
    sysfs.write(1, thermal_throttle__package_throttle_total_time_ms=9000)
    sysfs.write(2, thermal_throttle__core_throttle_total_time_ms=10)
    hot, _ = slowed.take(2 * SECOND)
    assert hot.tolist() == [0.25, 1, 0, 0]


def test_lowered_frequency_is_told():
    made = windows({"running": 1000}, [])
    rows = append_fields(made[0].rows, ("hot_ns", "slow_ns"), [[400 * MS], [200 * MS]], "u8", usemask=False)
    told = Summary()
    told.add_interval([replace(made[0], rows=rows), made[1]])
    (found,) = accounts(told, ASKED)
    said = "rank[37] lost 20 %: lowered frequency 20. It ran 40 % of the time on CPUs that were throttled for heat."
    assert sentence(found, Source()) == said
    assert found.cause == "frequency"
    assert "not seen" not in "".join(ledger(told, Source()).notes)


def test_top_shows_whose_time_went_to_whom():
    source = with_ranks((RANK, 3, b"48213"))
    state = TopState(source)
    times = {"running": 982, "waiting": 9, "softirq": 9}
    state.push(windows(times, STOLEN))
    lines = render(state, 110, 24)
    at = next(place for place, line in enumerate(lines) if line.startswith(" whose time was taken"))
    assert lines[at + 1].split("  ")[0] == " rank[37] (rank 3 of job 48213)"
    assert lines[at + 1].rstrip().endswith("1.8 %  softirq NET_RX 0.9, kubelet (in kubelet) 0.6, dcgm-exporter 0.3")
    narrow = render(state, 40, 20)
    at = narrow.index(" whose time was taken, to whom in %")
    assert narrow[at + 1 : at + 3] == [
        " 1.8 % rank[37] (rank 3 of job 48213)",
        "   softirq NET_RX 0.9, kubelet (in kube…",
    ]
    state.show([windows({"running": 1000}, [])])
    assert "whose time" not in "".join(render(state, 100, 24))


KNOWN = constants("ledger")
RUNNING, WAITING, BLOCKED, DEAD = (KNOWN[f"LEDGER_{name}"] for name in ("RUNNING", "WAITING", "BLOCKED", "DEAD"))


class Rows:
    """Live rows as programs write them, one CPU."""

    def __init__(self) -> None:
        self.tasks = np.zeros(8, layout("ledger", "ledger_task"))
        self.cpus = np.zeros(1, layout("ledger", "ledger_cpu"))
        self.times = ThreadTimes(self.tasks, self.cpus, proc=False)

    def put(self, place: int, state: int, *, ago: int = 0, **values: int) -> None:
        task = self.tasks[place]
        task["pid"] = task["tgid"] = 100 + place
        task["state"], task["first_ns"], task["since_ns"] = state, 1, time.monotonic_ns() - ago
        for name, value in values.items():
            task[name] = value

    def take(self) -> dict[int, dict[str, int]]:
        _, rows = self.times.take()
        return {int(row["pid"]): dict(zip(PARTS, row["parts"].tolist(), strict=True)) for row in rows}


def test_what_goes_on_is_added_up_to_now_but_for_waits():
    rows = Rows()
    rows.cpus["running"] = 1
    rows.put(0, RUNNING, ago=SECOND, hardirq_ns=3 * MS, irq_base_ns=MS)
    rows.put(1, BLOCKED, ago=SECOND, block=KNOWN["LEDGER_DISK"])
    rows.put(2, WAITING, ago=SECOND)
    rows.put(3, BLOCKED, ago=SECOND, stall=KNOWN["LEDGER_RECLAIM"])
    rows.put(4, RUNNING, ago=SECOND)
    times = rows.take()
    assert times[100]["running"] == pytest.approx(SECOND - 2 * MS, abs=SECOND / 2)
    assert times[100]["hardirq"] == 3 * MS
    assert times[101]["disk"] == pytest.approx(SECOND, abs=SECOND / 2)
    assert times[103]["reclaim"] == pytest.approx(SECOND, abs=SECOND / 2)
    assert sum(times[102].values()) == 0
    # Another one has its CPU: when it left was not shown.
    assert times[104]["running"] == 0
    assert times[104]["unknown"] == pytest.approx(SECOND, abs=SECOND / 2)


def test_a_time_is_told_once_and_a_dead_threads_row_is_free_again():
    rows = Rows()
    rows.put(0, DEAD, running_ns=5 * MS)
    rows.put(1, WAITING, waiting_ns=2 * MS)
    first = rows.take()
    assert (first[100]["running"], first[101]["waiting"]) == (5 * MS, 2 * MS)
    assert rows.tasks["pid"].tolist()[:2] == [0, 101]
    rows.tasks[1]["waiting_ns"] += MS
    second = rows.take()
    assert second == {101: second[101]} and second[101]["waiting"] == MS


def test_a_place_given_to_another_thread_starts_at_nothing():
    rows = Rows()
    rows.put(0, WAITING, waiting_ns=9 * MS)
    rows.take()
    rows.put(0, WAITING, waiting_ns=4 * MS, first_ns=2)
    assert rows.take()[100]["waiting"] == 4 * MS


def test_a_row_that_is_being_written_is_told_the_next_time():
    rows = Rows()
    rows.put(0, WAITING, waiting_ns=MS, writes=1)
    assert rows.take() == {}
    rows.tasks[0]["writes"] = 2
    assert rows.take()[100]["waiting"] == MS


def long_rows(cpus: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = (("cpu", 1), ("block", KNOWN["LEDGER_LOG_BLOCKS"]), ("old", KNOWN["LEDGER_OLDS"]))
    made = [np.zeros(cpus * size, layout("ledger", f"ledger_{name}")) for name, size in sizes]
    return made[0], made[1], made[2]


def test_the_beginning_of_a_long_wait_is_shared_out_by_blocks():
    cpus, blocks, olds = long_rows(2)
    waits = LongWaits(cpus, blocks, olds)
    for number, (start, parts) in enumerate([(100, [(7, 30), (8, 10)]), (150, [(8, 50)]), (200, [(9, 40)])]):
        block = blocks[KNOWN["LEDGER_LOG_BLOCKS"] + number]
        block["started_ns"], block["softirq_ns"] = start * MS, (0, 10 * MS, 10 * MS)[number]
        block["vector"] = (3, 7, 9)[number]
        for part, (tgid, ns) in zip(block["parts"], parts, strict=False):
            part["used"], part["tgid"], part["ns"] = 1, tgid, ns * MS
    cpus[1]["blocks_count"] = 2
    olds[0] = (50 * MS, 175 * MS, RANK, 1)
    cpus[0]["olds_count"], cpus[0]["olds_ns"] = 1, 125 * MS
    shares, interrupts, lost_ns = waits.take(240 * MS)
    told: dict[int, int] = {}
    for share in shares:
        assert share.tgid == RANK
        told[share.holder] = told.get(share.holder, 0) + share.ns // MS
    # Before the first block nobody is known; of the first all is its, of the second a half.
    assert told == {-1: 50, 7: 30, 8: 10 + 25}
    assert (interrupts, lost_ns) == ([Interrupted(RANK, 3, 10 * MS, 0)], 0)
    assert waits.take(240 * MS) == ([], [], 0)


def test_long_waits_that_were_written_over_are_counted():
    cpus, blocks, olds = long_rows(1)
    waits = LongWaits(cpus, blocks, olds)
    olds[:] = (0, MS, RANK, 0)
    cpus[0]["olds_count"], cpus[0]["olds_ns"] = KNOWN["LEDGER_OLDS"] + 3, (KNOWN["LEDGER_OLDS"] + 3) * MS
    assert waits.take(2 * MS)[2] == 3 * MS
