"""`foreshock diff`: what got slower first, then who; ranges, exit codes, bad recordings, hostile names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sim.recordings import DEMO, slower, twin
from unit.synthetic import HEADER, MS, Node, histogram, hog_interval
from unit.test_gate import CHANGES, changed, columns, intervals
from unit.test_gate import TABLES as GATED

from tracer.commands import main
from tracer.compare.intake import TABLES
from tracer.difference.changes import changes_of
from tracer.difference.difference import difference
from tracer.difference.reading import read_sides
from tracer.difference.stretch import Stretch
from tracer.difference.verdict import when
from tracer.recording import Recording, RecordingWriter, read_recording
from tracer.units import display_width
from tracer.window import Window

HOSTILE = "\x1b[2Jcu\u202e9\n"
SECOND = 10**9
ILL = slower(("softirq", "run"), 8, vector=3)  # twice as long


@pytest.fixture(scope="module")
def demo() -> Recording:
    return read_recording(DEMO)


@pytest.fixture(scope="module")
def calm(demo: Recording, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(twin(tmp_path_factory.mktemp("calm") / "calm.fsk", demo, "cu17", seconds=20))


@pytest.fixture(scope="module")
def ill(demo: Recording, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same node an hour later, with NET_RX softirqs that take twice as long and another swappiness."""
    settings = {"sysctl": {**demo.header["fingerprint"]["sysctl"], "vm.swappiness": "1"}}
    return make(demo, tmp_path_factory.mktemp("ill") / "ill.fsk", change=ILL, header={"fingerprint": settings})


@pytest.fixture(scope="module")
def both(demo: Recording, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One recording of a minute, that is ill from its 30th second on."""
    change = slower(("softirq", "run"), 8, since=30, vector=3)
    return str(twin(tmp_path_factory.mktemp("both") / "both.fsk", demo, "cu17", seconds=60, change=change))


def make(demo: Recording, path: Path, seconds: int = 20, header: dict[str, Any] | None = None, **options: Any) -> str:
    """Write a recording of cu17 an hour later, after a reboot."""
    header = {"boot_id": "the next", **(header or {})}
    return str(twin(path, demo, "cu17", seconds=seconds, seed=1, skew_ns=3600 * SECOND, header=header, **options))


def run(*arguments: str, width: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(main, ["diff", *arguments])


def said(done: Result) -> str:
    return " ".join(done.stdout.split())


def test_no_change_says_so_and_exits_with_0(calm: str, demo: Recording, tmp_path: Path):
    done = run(calm, make(demo, tmp_path / "again.fsk"))
    assert done.exit_code == 0, done.stdout
    assert done.stdout.startswith("no change beyond the noise of the windows\n")
    assert "would have shown a change of" in said(done)


def test_a_recording_with_itself_is_no_change_and_named(calm: str):
    done = run(calm, calm)
    assert done.exit_code == 0
    assert done.stdout.startswith("no change beyond the noise of the windows\n")
    assert "both sides are the same intervals" in said(done)


def test_what_got_slower_comes_first_with_its_numbers(calm: str, ill: str):
    done = run(calm, ill)
    assert done.exit_code == 0, "no gate was asked for"
    assert re.match(
        r"slower beyond the noise: NET_RX softirq run time p?\w+ \S+ µs before, \S+ µs after "
        r"\(\+\d+ %, \+\d+ to \+\d+ %\)",
        said(done),
    )
    assert "NET_RX softirqs took" in said(done)


def test_the_other_way_round_it_is_faster(calm: str, ill: str):
    done = run(ill, calm)
    assert said(done).startswith("nothing is slower; faster beyond the noise: NET_RX softirq run time")
    assert "recorded before the other" in said(done)


def test_the_gate_has_an_exit_code_of_its_own(calm: str, ill: str):
    done = run(calm, ill, "--fail-over", "5%")
    assert done.exit_code == 6
    error, hint = done.stderr.splitlines()
    assert error.startswith("foreshock: error: slower by more than 5 %: NET_RX softirq run time")
    assert hint.startswith("hint: ")
    assert run(calm, ill, "--fail-over", "300 %").exit_code == 0
    assert run(ill, calm, "--fail-over", "5%").exit_code == 0, "faster"


def test_two_ranges_of_one_recording(both: str):
    done = run("--range", "0s..28s", "--range", "32s..", both)
    assert said(done).startswith("slower beyond the noise: NET_RX softirq run time")
    assert run("--range", "0s..14s", "--range", "15s..29s", both).stdout.startswith("no change beyond the noise")


def test_ranges_by_the_clock_and_of_two_files(both: str, ill: str):
    by_clock = run("--range", "08:35:43..08:36:10", "--range", "08:36:14..", both)
    assert said(by_clock).startswith("slower beyond the noise: NET_RX softirq run time")
    of_both = run("--range", "5s..", both, ill)
    assert "55 s in 28 windows" in said(of_both) and "15 s in 15 windows" in said(of_both)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--range", "0s..20s", "--range", "2m..3m"], "(the one named at place 2)"),
        (["--range", "2m..3m", "--range", "2s..20s"], "nothing was recorded in that --range"),
        (["--range", "09:35:43..09:36:10", "--range", "0s..20s"], "nothing was recorded in that --range"),
        (["--range", "0s..20s"], "two ranges"),
        ([], "two ranges"),
        (["--range", "0s..20s"] * 33, "two ranges"),
        (["--range", "20s..10s", "--range", "20s..30s"], "--range 20s..10s ends before it starts"),
        (["--range", "20s..20s", "--range", "20s..30s"], "--range 20s..20s is empty"),
        *(
            (["--range", one, "--range", "20s..30s"], f"'{one}' is no range: say for example 10s..20s")
            for one in ("10..20", "10s-20s", "-5s..10s", "..", "10s...", "25:00..26:00", "08:36:14+01:00..")
        ),
        (["--fail-over", "5"], "is no limit"),
        (["--fail-over", "0%"], "is no limit"),
        (["--fail-over", "many"], "is no limit"),
    ],
)
def test_what_can_not_be_meant_is_a_usage_error(both: str, arguments: list[str], words: str):
    done = run(*arguments, both)
    assert done.exit_code == 2 and not done.stdout
    error, hint = done.stderr.splitlines()
    assert error.startswith("foreshock: error: ") and words in error and hint.startswith("hint: ")


def test_too_many_recordings_or_no_place_to_read_them_from(calm: str):
    assert run(*[calm] * 33).exit_code == run("-", calm, "-").exit_code == run().exit_code == 2
    assert run(calm, calm, *["--range", "0s.."] * 3).exit_code == 2


@pytest.fixture(scope="module")
def calms(calm: str, demo: Recording, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Four recordings of the same work, of an hour each."""
    folder = tmp_path_factory.mktemp("calms")
    paths = [folder / f"calm{number}.fsk" for number in range(3)]
    return [
        calm,
        *(
            str(twin(path, demo, "cu17", seconds=20, seed=2 + place, skew_ns=-3600 * SECOND * (place + 1)))
            for place, path in enumerate(paths)
        ),
    ]


def test_one_recording_of_before_cannot_tell_a_change_from_another_time(
    calms: list[str], demo: Recording, tmp_path: Path
):
    """Slower by a quarter: beyond the noise of 20 seconds, and within what two times of a node may differ by."""
    late = make(demo, tmp_path / "late.fsk", change=slower(("softirq", "run"), 3, vector=3))
    done = run("--fail-over", "5%", calms[0], late)
    assert done.exit_code == 7 and done.stderr.startswith(
        "foreshock: error: not enough to tell: NET_RX softirq run time"
    )
    assert "another time of the same may be as far off" in said(done)
    assert "slow parts of after shorter than 5 s, or several with gaps, may pass" in said(done)
    again = run("--fail-over", "5%", calms[0], calms[0], calms[0], late)
    assert again.exit_code == 7 and "named twice: it counts once" in said(again)
    done = run("--fail-over", "5%", *calms, late)
    assert done.exit_code == 6 and "another time" not in said(done)
    assert said(done).count(" before cu17 · ") == 4 and "slow parts" not in said(done)
    little = make(demo, tmp_path / "little.fsk", change=slower(("softirq", "run"), 1, vector=3))
    done = run("--fail-over", "5%", *calms, little)
    assert done.exit_code == 7 and "before of less than 60 s don't tell" in done.stderr, "short ones tell less"
    assert run("--fail-over", "5%", *calms).exit_code == 0


def test_before_may_be_several_ranges_and_one_that_is_named_twice_is_said(both: str, calm: str, ill: str):
    done = run("--range", "0s..14s", "--range", "14s..28s", "--range", "32s..", both)
    assert said(done).startswith("slower beyond the noise: NET_RX softirq run time")
    assert "recordings of before that follow each other count as one time" in said(done)
    assert "a recording of before is named twice" in said(run(calm, calm, ill))


def test_overlapping_ranges_are_named(both: str):
    done = run("--range", "0s..25s", "--range", "20s..29s", both)
    assert "the sides have 5 s in common" in said(done)


def test_a_range_that_is_partly_outside_is_named(both: str):
    done = run("--range", "0s..25s", "--range", "40s..90s", both)
    assert "after: 30 s of its range lie outside of the recording" in said(done)


def test_a_range_that_follows_the_other_is_named_as_well(both: str):
    done = run("--range", "15s..29s", "--range", "0s..15s", both)
    assert "what is called after was recorded before the other" in said(done)
    assert "recorded before the other" not in said(run("--range", "0s..15s", "--range", "15s..29s", both))


def test_a_short_side_is_held_against_moments(both: str):
    done = run("--range", "0s..29s", "--range", "32s..40s", both)
    assert "after is 8 s only" in said(done)


def test_too_little_data_is_an_error(both: str, calm: str, demo: Recording, tmp_path: Path):
    for arguments in (
        ["--range", "0s..3s", "--range", "10s..40s", both],
        [calm, make(demo, tmp_path / "short.fsk", 4)],
        [calm, make(demo, tmp_path / "other.fsk", without=tuple({w.probe for w in demo.intervals[0]} - {"hung"}))],
    ):
        done = run(*arguments)
        assert done.exit_code == 4 and not done.stdout
        assert re.fullmatch(r"foreshock: error: there is too little data to tell: .*\nhint: .*\n", done.stderr)


def test_files_that_can_not_be_read(calm: str, demo: Recording, tmp_path: Path):
    (tmp_path / "text.fsk").write_text("hello")
    empty = make(demo, tmp_path / "empty.fsk", 0)
    for bad in (str(tmp_path / "none.fsk"), str(tmp_path / "text.fsk"), empty):
        done = run(calm, bad)
        assert done.exit_code == 4 and not done.stdout
        assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("since, until", [(24, 60), (45, 60), (15, 30)])
def test_what_is_slow_for_a_part_is_told_with_its_time_and_fails_a_gate(
    since: int, until: int, demo: Recording, tmp_path: Path
):
    before = str(twin(tmp_path / "before.fsk", demo, "cu17", seconds=60))
    late = slower(("softirq", "delay"), 64, since=since, share=0.1, vector=3)

    def change(number: int, window: Window) -> Window:
        return late(number, window) if number < until else window

    after = make(demo, tmp_path / "after.fsk", 60, change=change)
    done = run("--fail-over", "50%", before, after)
    assert done.exit_code == 6 and "slower by more than 50 % for " in done.stderr
    told = (
        r"only for [123]\d s of after, from \d\d:\d\d:\d\d UTC \([\d.]+ s in\): slower beyond the noise: NET_RX softirq"
    )
    assert re.match(told, said(done))
    assert "after is not one thing: --range compares a part of it alone, or the rest" in said(done)
    tree = json.loads(run("--json", before, after).stdout)
    stretch = tree["stretch"]
    assert [one["part"] for one in stretch["slower"]] == ["NET_RX"]
    # Lengths are tried in steps of a fifth.
    assert stretch["start_s"] == pytest.approx(since, abs=8)
    assert stretch["start_s"] + stretch["seconds"] == pytest.approx(until, abs=8)
    assert stretch["start_unix_s"] == pytest.approx(tree["after"]["start_unix_s"] + stretch["start_s"])
    assert json.loads(run("--json", before, make(demo, tmp_path / "calm.fsk", 60)).stdout)["stretch"] is None


def test_parts_with_gaps_between_are_told_apart_each_with_its_time(demo: Recording, tmp_path: Path):
    before = str(twin(tmp_path / "before.fsk", demo, "cu17", seconds=90))
    slow = slower(("softirq", "run"), 20, vector=1)
    spans = [(30, 42), (52, 66)]

    def change(number: int, window: Window) -> Window:
        return slow(number, window) if any(start <= number < end for start, end in spans) else window

    after = make(demo, tmp_path / "after.fsk", 90, change=change)
    done = run("--fail-over", "50%", before, after)
    span = r"from \d\d:\d\d:\d\d to \d\d:\d\d:\d\d UTC \([\d.]+ s in\)"
    told = rf"for 2\d s of after, {span}, and again {span}: "
    assert re.match(rf"only {told}slower beyond the noise: TIMER softirq run time", said(done)), said(done)
    # With the gap in it, it was within the noise.
    assert done.exit_code == 7 and re.search(f"not enough to tell: {told}", done.stderr), done.stderr
    tree = json.loads(run("--json", before, after).stdout)
    stretch = tree["stretch"]
    assert [(one["start_s"], one["start_s"] + one["seconds"]) for one in stretch["spans"]] == [
        pytest.approx(span, abs=3) for span in spans
    ]
    assert stretch["seconds"] == pytest.approx(sum(one["seconds"] for one in stretch["spans"]))
    began_s, ended_s = tree["after"]["start_unix_s"], stretch["spans"][1]["end_unix_s"]
    assert ended_s == stretch["end_unix_s"] == pytest.approx(began_s + 66, abs=3)
    # 5.7 times as long; with what it was in the gap it would be 3.5.
    assert [one["ratio"] > 4 for one in stretch["slower"]] == [True]


def test_what_is_faster_is_told_beside_what_is_slower_for_a_part(demo: Recording, tmp_path: Path):
    slow, fast = slower(("softirq", "run"), 20, vector=1), slower(("softirq", "run"), 8, vector=3)
    before = str(twin(tmp_path / "before.fsk", demo, "cu17", seconds=60, change=fast))
    after = make(demo, tmp_path / "after.fsk", 60, change=lambda number, one: slow(number, one) if number < 20 else one)
    told = said(run(before, after))
    assert re.match(
        r"only for [12][\d.]+ s of after, from \d\d:\d\d:\d\d UTC \(its beginning\): slower .*TIMER", told
    ), told
    assert "; 1 thing is faster; there is less to do: " in told, told


def test_of_many_parts_some_are_told(demo: Recording, tmp_path: Path):
    side = read_sides([str(twin(tmp_path / "one.fsk", demo, "cu17", seconds=40))] * 2, ())[1]
    stretch = Stretch(
        tuple((start, start + 2.0) for start in range(0, 30, 6)), changes_of([side.node], side.node), frozenset()
    )
    found = difference([side], side)
    assert when(found, stretch).endswith(" UTC (12 s in), and 2 more times")
    assert when(found, replace(stretch, spans=stretch.spans[:4])).endswith(" UTC (12 s in), and 1 more time")
    assert when(found, stretch).count("again from") == 2


def test_a_part_fails_a_gate_beside_something_that_is_a_little_slower_throughout(demo: Recording, tmp_path: Path):
    before = str(twin(tmp_path / "before.fsk", demo, "cu17", seconds=60))
    throughout, part = slower(("softirq", "run"), 5, vector=3), slower(("softirq", "run"), 28, vector=1)

    def change(number: int, window: Window) -> Window:
        window = throughout(number, window)
        return part(number, window) if 20 <= number < 40 else window

    after = make(demo, tmp_path / "after.fsk", 60, change=change)
    done = run("--fail-over", "100%", before, after)
    assert done.exit_code == 6 and re.search(r"for [123]\d s of after.*TIMER softirq run time", done.stderr), (
        done.stderr
    )
    assert re.match(r"slower beyond the noise: NET_RX softirq .*; for [123]\d s of after, ", said(done)), said(done)
    assert run("--fail-over", "5000%", before, after).exit_code == 0


def test_the_limit_changes_nothing_of_what_is_found(demo: Recording, tmp_path: Path):
    before = str(twin(tmp_path / "before.fsk", demo, "cu17", seconds=60))
    after = make(demo, tmp_path / "after.fsk", 60, change=slower(("softirq", "run"), 20, since=40, vector=1))
    done = run("--fail-over", "5000%", before, after)
    assert done.exit_code == 0 and re.match(r"only for [12]\d s of after", said(done)), said(done)


def test_cut_damaged_and_lossy_recordings_are_compared_and_named(calm: str, demo: Recording, tmp_path: Path):
    def losing(number: int, window: Window) -> Window:
        return replace(window, losses={"unmatched": 900}) if window.probe == "runqueue" else window

    whole = Path(make(demo, tmp_path / "lossy.fsk", 30, change=losing)).read_bytes()
    (tmp_path / "cut.fsk").write_bytes(whole[: len(whole) * 3 // 4])
    damaged = bytearray(whole)
    damaged[len(whole) * 3 // 4] ^= 1
    (tmp_path / "damaged.fsk").write_bytes(damaged)
    for name, words in (("lossy", "were not seen"), ("cut", "was cut off"), ("damaged", "is damaged at byte")):
        done = run(calm, str(tmp_path / f"{name}.fsk"))
        assert done.exit_code == 0
        assert re.search(rf"- after: .*{words}", said(done)), done.stdout
    before = said(run(calm, str(tmp_path / "lossy.fsk"), calm))
    assert re.search(r"- before \(lossy.fsk\): .* were not seen", before), before


def test_recordings_of_different_kinds_are_compared_in_what_they_share(calm: str, demo: Recording, tmp_path: Path):
    header = {"cpus": 8, "interval_ns": SECOND // 2}
    done = run(calm, make(demo, tmp_path / "other.fsk", 30, header=header, without=("softirq", "hardirq")))
    assert done.exit_code == 0
    for words in (
        "2 CPUs before, 8 after",
        "intervals of 1 s before, 500 ms after",
        "recorded on one side only: inter",
    ):
        assert words in said(done)


def test_recordings_of_two_nodes_are_named(calm: str, ill: str, demo: Recording, tmp_path: Path):
    other = str(twin(tmp_path / "other.fsk", demo, HOSTILE, seconds=20))
    told = said(run(calm, other))
    assert r'before is of cu17, after of "\x1b[2Jcu\u202e9\x0a": what differs may be' in told, told
    assert "what differs may be" not in said(run(calm, ill))


def test_recordings_of_different_parts_of_a_node_are_not_compared(calm: str, demo: Recording, tmp_path: Path):
    done = run(calm, make(demo, tmp_path / "one.fsk", header={"filters": {"pid": "7"}}))
    assert done.exit_code == 4 and "all before, pid 7 after" in done.stderr


def test_a_rank_is_the_same_part_of_a_node_whatever_process_it_is(demo: Recording, tmp_path: Path):
    before, after = (
        make(demo, tmp_path / f"{pid}.fsk", header={"filters": {"pid": pid, "job": "77", "rank": "3"}})
        for pid in ("7", "8")
    )
    assert run(before, after).exit_code == 0
    other = make(demo, tmp_path / "other.fsk", header={"filters": {"pid": "7", "job": "77", "rank": "4"}})
    assert "job 77, rank 3 before, job 77, rank 4 after" in run(before, other).stderr


def test_settings_that_differ_are_shown_and_no_others(calm: str, ill: str):
    lines = run(calm, ill, width=100).stdout.splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("WHAT DIFFERS"))
    rows = [line.split() for line in lines[title + 2 : title + 6] if line.startswith("  ")]
    assert ["sysctl", "/", "vm.swappiness", "60", "1"] in rows
    assert len([row for row in rows if "sysctl" in row]) == 1


def test_who_held_the_cpu_is_told(tmp_path: Path):
    """A hog that two victims wait for, each second of the second recording."""
    for name, make_interval in (("before", Node.interval), ("after", hog_interval)):
        node = Node()
        with RecordingWriter(tmp_path / f"{name}.fsk", HEADER) as writer:
            for _ in range(12):
                writer.write(make_interval(node))
    done = run(str(tmp_path / "before.fsk"), str(tmp_path / "after.fsk"))
    assert "run-queue wait" in said(done).partition("before")[0]
    # 94 % of 949 ms, and 92 % of 640 ms.
    who = "in long waits alone, tasks waited 1.48 s of every second for hog[1234] to leave a CPU (0 ns before)."
    assert who in said(done)
    assert "/system.slice/backup.service" in run(*_both(tmp_path), width=120).stdout


def _both(folder: Path) -> list[str]:
    return [str(folder / "before.fsk"), str(folder / "after.fsk")]


def test_a_task_that_is_waited_for_is_named_where_the_noise_hides_it(tmp_path: Path):
    """Every wait is noise: of each two seconds one has long ones on both sides, for somebody else before."""
    for name, comm in (("before", b"other"), ("after", b"hog")):
        node = Node()
        with RecordingWriter(tmp_path / f"{name}.fsk", HEADER) as writer:
            for number in range(20):
                made = hog_interval(node) if number % 2 else node.interval()
                writer.write([_held_by(comm, window) for window in made])
    done = run(*_both(tmp_path))
    assert done.stdout.startswith("no change beyond the noise"), done.stdout
    # Softirqs are late for it on both sides: 30 ms every other second.
    who = "in long waits alone, tasks waited 740 ms of every second for hog[1234] to leave a CPU (15 ms before)."
    assert who in said(done)


def _held_by(comm: bytes, window: Window) -> Window:
    if (window.probe, window.table) != ("runqueue", "worst"):
        return window
    rows = window.rows.copy()
    rows["holder_comm"] = comm
    return replace(window, rows=rows)


def test_cgroups_that_wait_longer_are_told(tmp_path: Path):
    for name, waits in (("before", 3), ("after", 30)):
        node = Node()
        with RecordingWriter(tmp_path / f"{name}.fsk", HEADER) as writer:
            for _ in range(12):
                slow = node.interval(waits={1: [200 * MS] * (20 if name == "after" else 1)})
                rows = histogram([("cgroup", "S96")], {(b"/train",): [MS] * waits}, preempted=0)
                start, end = slow[0].start_ns, slow[0].end_ns
                writer.write([*slow, Window("runqueue_cgroup", "wait", start, end, rows)])
    tree = json.loads(run("--json", *_both(tmp_path)).stdout)
    (waited,) = (one for one in tree["parties"] if one["did"] == "waited")
    assert waited["name"] == "/train"
    assert (waited["before_s_per_s"], waited["after_s_per_s"]) == pytest.approx((0.003, 0.030))


def test_a_recording_may_come_from_a_pipe(calm: str, ill: str):
    done = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["diff", "-", ill], input=Path(calm).read_bytes())
    assert done.exit_code == 0
    assert "standard input" in said(done) and "NET_RX softirq run time" in said(done)


def test_json_says_what_the_text_says(calm: str, ill: str):
    done = run("--json", "--fail-over", "5%", calm, ill)
    assert done.exit_code == 6
    tree = json.loads(done.stdout)
    assert tree["schema"] == "foreshock.diff/1" and tree["verdict"].startswith("slower beyond the noise")
    (first,) = tree["slower"]
    assert (first["series"], first["part"], first["unit"]) == ("softirq.run", "NET_RX", "s")
    assert first["before"] * 1.5 < first["after_low"] < first["after"] < first["after_high"] < first["before"] * 2.7
    assert first["ratio"] == pytest.approx(2, rel=0.2) and first["beyond_noise"]
    (failing,) = tree["failing"]
    assert failing.startswith("NET_RX softirq run time") and not tree["doubtful"]
    assert tree["fail_over"] == pytest.approx(0.05)
    assert {"setting": "sysctl / vm.swappiness", "before": "60", "after": "1"} in tree["differences"]
    assert len(tree["compared"]) > 20 and tree["before"]["seconds"] == pytest.approx(20)


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_every_line_fits_and_hostile_names_are_escaped(width: int, calm: str, demo: Recording, tmp_path: Path):
    def change(number: int, window: Window) -> Window:
        window = ILL(number, window)
        if (window.probe, window.table) != ("runqueue", "worst") or not len(window.rows):
            return window
        rows = window.rows.copy()
        for name in ("holder_comm", "holder_cgroup", "comm"):
            rows[name] = (HOSTILE * 8).encode()[: rows.dtype[name].itemsize]
        return replace(window, rows=rows)

    facts = {"fingerprint": {HOSTILE: {HOSTILE: HOSTILE * 50}}}
    path = str(twin(tmp_path / f"{HOSTILE[:4]}.fsk", demo, HOSTILE, seconds=20, change=change, header=facts))
    for arguments in ([calm, path], ["--json", calm, path]):
        done = run(*arguments, width=width)
        assert done.exit_code == 0
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", done.stdout)
        if arguments[0] != "--json":
            assert all(display_width(line) <= width for line in done.stdout.splitlines())
    assert HOSTILE not in str(json.loads(done.stdout))


def test_a_clock_that_is_set_between_two_ranges_keeps_them_apart(demo: Recording, tmp_path: Path):
    """The clock was an hour ahead at first; the second range is named by the time that was right."""
    clock = np.dtype([("offset_ns", "i8")])

    def setting(number: int, window: Window) -> Window:
        if (window.probe, window.table) == ("agent", "clock") and number == 30:
            return replace(window, rows=np.array([(demo.header["clock_offset_ns"],)], clock))
        return window

    path = str(twin(tmp_path / "set.fsk", demo, "n", seconds=60, change=setting, skew_ns=3600 * SECOND))
    done = run("--range", "0s..25s", "--range", "32s..58s", path)
    assert done.exit_code == 0
    assert "2026-11-30 09:35:42 to 09:36:07 UTC" in said(done)
    assert "2026-11-30 08:36:14 to 08:36:40 UTC" in said(done)


# All columns are test_gate's: of what is read here, these.
@pytest.mark.parametrize("how", ["dropped", "name", "matrix", "nested"])
def test_any_column_may_be_anything(how: str, tmp_path: Path):
    def write(number: int, hostile: list[list[Window]]) -> str:
        node, path = Node(cpus=2), tmp_path / f"{number}.fsk"
        with RecordingWriter(path, HEADER) as writer:
            for _ in range(3):
                for windows in (node.interval(), hostile[1]):
                    start, end = node.now, node.now + SECOND
                    writer.write([replace(one, start_ns=start, end_ns=end) for one in windows])
                    node.now = end
        return str(path)

    before = write(0, intervals())
    read = {*TABLES, ("runqueue", "worst"), ("softirq", "worst")} & {*GATED}
    for number, (table, column) in enumerate((one, column) for one in sorted(read) for column in columns(one)[:1]):
        after = write(number + 1, [*changed(table, column, CHANGES[how])])
        done = run(before, after)
        assert done.exit_code == 0, (table, column, done.stderr)
