"""The ledger in words: what each process lost and to whom; threads' times out of rows that change meanwhile."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tracer.analysis.ledger import Account, accounts, sentence
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.kernel.longwaits import LongWaits
from tracer.kernel.threadtimes import PARTS, ThreadTimes
from tracer.layouts import constants, layout
from tracer.reports.sections.ledger import ledger
from tracer.window import Window

MS, SECOND = 1_000_000, 1_000_000_000
NAMES = [
    *("wall_ns", "running_ns", "waiting_ns", "throttled_ns", "reclaim_ns", "compaction_ns", "wait_softirq_ns"),
    *("wait_hardirq_ns", "softirq_ns", "hardirq_ns", "disk_ns", "mutex_ns", "rwsem_ns", "rtlock_ns", "open_wait_ns"),
]
TIME = np.dtype([("pid", "u4"), ("comm", "S16"), ("cgroup", "S192"), *((name, "u8") for name in NAMES)])
TAKEN = np.dtype([("pid", "u4"), ("kind", "S8"), ("number", "u4"), ("name", "S16"), ("cgroup", "S192"), ("ns", "u8")])
RANK = 37


def summary(times: dict[str, int], taken: list[tuple], seconds: int = 1, comm: bytes = b"rank") -> Summary:
    """Return a summary of ``seconds`` equal intervals, in ms, with one process."""
    row = np.zeros(1, TIME)
    row["pid"], row["comm"], row["cgroup"] = RANK, comm, b"/job"
    for name, ms in {"wall": 1000, **times}.items():
        row[f"{name}_ns"] = int(ms * MS)
    rows = np.array(
        [(RANK, kind, number, name, cgroup, int(ms * MS)) for kind, number, name, cgroup, ms in taken], TAKEN
    )
    made = Summary()
    for second in range(seconds):
        span = (second * SECOND, (second + 1) * SECOND)
        made.add_interval([Window("ledger", "time", *span, row), Window("ledger", "taken", *span, rows)])
    return made


def account(times: dict[str, int], taken: list[tuple], **more) -> Account:
    (found,) = accounts(summary(times, taken, **more))
    return found


STOLEN = [
    (b"softirq", 3, b"NET_RX", b"", 9),
    (b"task", 801, b"kubelet", b"/system/kubelet", 6),
    (b"task", 912, b"dcgm-exporter", b"/job", 3),
]


def test_says_what_a_process_lost_and_to_whom():
    said = sentence(account({"running": 982, "waiting": 9, "softirq": 9}, STOLEN, seconds=3), Source())
    assert said == "rank[37] lost 1.8 %: softirq NET_RX 0.9, kubelet (in kubelet) 0.6, dcgm-exporter 0.3."


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


def test_ranks_are_called_so():
    source = Source()
    member = {"pid": RANK, "rank": 3, "job": b"48213", "ended": 0}
    row = np.zeros(1, [("pid", "u4"), ("began_ns", "u8"), ("ended", "u1"), ("rank", "i4"), ("job", "S16")])
    for name, value in member.items():
        row[name] = value
    source.jobs.add(Window("jobs", "members", 0, SECOND, row))
    said = sentence(account({"running": 982, "waiting": 9, "softirq": 9}, STOLEN), source)
    assert said.startswith("rank[37] (rank 3 of job 48213) lost 1.8 %: softirq NET_RX 0.9")


def test_the_section_has_numbers_and_words():
    section = ledger(summary({"running": 982, "waiting": 9, "softirq": 9}, STOLEN), Source())
    assert section.rows == [["rank[37]", "1.8 %", "982 ms", "9 ms", "0 ns", "9 ms", "0 ns", "0 ns", "0 ns"]]
    assert section.notes[0].startswith("rank[37] lost 1.8 %")
    assert ledger(Summary(), Source()) is None


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
    assert (interrupts, lost_ns) == ([(RANK, 10 * MS, 0)], 0)
    assert waits.take(240 * MS) == ([], [], 0)


def test_long_waits_that_were_written_over_are_counted():
    cpus, blocks, olds = long_rows(1)
    waits = LongWaits(cpus, blocks, olds)
    olds[:] = (0, MS, RANK, 0)
    cpus[0]["olds_count"], cpus[0]["olds_ns"] = KNOWN["LEDGER_OLDS"] + 3, (KNOWN["LEDGER_OLDS"] + 3) * MS
    assert waits.take(2 * MS)[2] == 3 * MS
