"""A gate passes on grounds only: not for want of data, nor because one time is named as several."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sim.recordings import DEMO, slower, twin
from unit.test_difference_report import SECOND, make, run, said

from tracer.difference.changes import changes_of
from tracer.difference.grounds import distinct, lacking, times_of
from tracer.difference.reading import read_sides
from tracer.difference.side import Side
from tracer.difference.whose import parties
from tracer.recording import Recording, RecordingWriter, read_recording
from tracer.window import Window


@pytest.fixture(scope="module")
def demo() -> Recording:
    return read_recording(DEMO)


@pytest.fixture(scope="module")
def calm(demo: Recording, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(twin(tmp_path_factory.mktemp("calm") / "calm.fsk", demo, "cu17", seconds=20))


@pytest.fixture(scope="module")
def side(calm: str) -> Side:
    return read_sides([calm], [lambda source, first: (first[0], first[0] + 1000 * SECOND)] * 2)[1]


def later(side: Side, seconds: float, length: float = 20.0) -> Side:
    """The same side so many seconds later, by both clocks, of another length."""
    shift, node = int(seconds * SECOND), side.node
    start, end = side.start_ns + shift, side.start_ns + shift + int(length * SECOND)
    begun = node.start_ns + shift
    return replace(
        side, start_ns=start, end_ns=end, node=replace(node, start_ns=begun, end_ns=begun + int(length * SECOND))
    )


def losing(share: float) -> object:
    def change(number: int, window: Window) -> Window:
        if (window.probe, window.table) != ("softirq", "run"):
            return window
        counted = int(window.rows["slots"].sum())
        return replace(window, losses={"unmatched": round(counted * share / (1 - share))})

    return change


def test_a_gate_does_not_pass_where_much_was_lost(calm: str, demo: Recording, tmp_path: Path):
    lossy, few = (
        make(demo, tmp_path / f"{name}.fsk", change=losing(share)) for name, share in (("lossy", 0.8), ("few", 0.02))
    )
    done = run("--fail-over", "5%", calm, lossy)
    assert done.exit_code == 7 and "of lossy.fsk's softirq events were lost" in done.stderr
    assert "the gate can't tell: " in said(done)
    assert run(calm, lossy).exit_code == 0, "no gate"
    assert run("--fail-over", "5%", lossy, calm).exit_code == 7, "before"
    assert run("--fail-over", "5%", calm, few).exit_code == 0
    assert len(json.loads(run("--json", "--fail-over", "5%", calm, lossy).stdout)["lacking"]) == 1


def test_a_gate_does_not_pass_where_a_side_lacks_a_probe_and_says_nothing_of_it(
    calm: str, demo: Recording, tmp_path: Path
):
    bare = make(demo, tmp_path / "bare.fsk", without=("softirq", "runqueue"))
    for sides, which in (((calm, bare), "before"), ((bare, calm), "after")):
        done = run("--fail-over", "5%", *sides)
        assert done.exit_code == 7 and f"runqueue and softirq were recorded {which} only" in done.stderr
        assert "in long waits alone" not in done.stdout
    done = run("--fail-over", "5%", calm, bare, calm)
    assert "runqueue and softirq were recorded in some of before and after only" in done.stderr


def test_a_gate_does_not_pass_of_few_windows_or_of_a_damaged_recording(calm: str, demo: Recording, tmp_path: Path):
    done = run("--fail-over", "5%", calm, make(demo, tmp_path / "short.fsk", 7))
    assert done.exit_code == 7 and "there are only 7 windows of short.fsk" in done.stderr
    damaged = bytearray(Path(make(demo, tmp_path / "damaged.fsk", 30)).read_bytes())
    damaged[len(damaged) * 3 // 4] ^= 1
    (tmp_path / "damaged.fsk").write_bytes(damaged)
    done = run("--fail-over", "5%", calm, str(tmp_path / "damaged.fsk"))
    assert done.exit_code == 7 and "damaged.fsk is damaged" in done.stderr
    part = run("--fail-over", "5%", "--range", "0s..15s", calm, str(tmp_path / "damaged.fsk"))
    assert part.exit_code == 0, "what was asked for is whole"


def test_a_gate_does_not_pass_where_after_was_cut_off(calm: str, demo: Recording, tmp_path: Path):
    """As by SIGKILL, between two intervals; a range that ends before is whole, and so is enough of before."""
    cut = make(demo, tmp_path / "cut.fsk", end=False)
    done = run("--fail-over", "5%", calm, cut)
    assert done.exit_code == 7 and "cut.fsk was cut off after 20 s: what came then may be slower" in done.stderr
    assert "the gate can't tell: cut.fsk was cut off after 20 s" in said(done)
    assert run(calm, cut).exit_code == 0, "no gate"
    part = run("--fail-over", "5%", "--range", "0s..15s", calm, cut)
    assert part.exit_code == 0, part.stderr
    turned = run("--fail-over", "5%", cut, calm)
    assert turned.exit_code == 0 and re.search(r"- before: \S+cut.fsk was cut off after", said(turned))


def test_what_is_slower_fails_a_gate_whatever_is_missing_besides(calm: str, demo: Recording, tmp_path: Path):
    path = make(demo, tmp_path / "ill.fsk", change=slower(("softirq", "run"), 24, vector=3), without=("runqueue",))
    assert run("--fail-over", "5%", calm, path).exit_code == 6


def test_the_same_intervals_are_no_after(calm: str):
    done = run("--fail-over", "5%", calm, calm)
    assert done.exit_code == 7 and "these are the same intervals" in done.stderr
    apart = run("--fail-over", "5%", "--range", "0s..10s", "--range", "10s..20s", calm)
    assert apart.exit_code == 0, apart.stderr


def test_gaps_are_missing(side: Side):
    """Of 20 seconds one, then three, were not recorded."""
    found = [[*lacking([later(side, 60)], replace(side, gaps=((side.start_ns, gap),)))] for gap in (SECOND, 3 * SECOND)]
    assert not found[0] and found[1] == ["calm.fsk has nothing of 3 s"]


def test_an_interval_that_is_left_out_is_missing_and_nobodys_time(demo: Recording, tmp_path: Path):
    """The 10th of 20 intervals took nine seconds, in which CPUs were counted as before."""
    whole = read_recording(make(demo, tmp_path / "whole.fsk"))
    with RecordingWriter(tmp_path / "held.fsk", whole.header) as writer:
        for number, windows in enumerate(whole.intervals):
            late_ns = (8 * SECOND if number > 9 else 0), (8 * SECOND if number >= 9 else 0)
            writer.write(
                [
                    replace(one, start_ns=one.start_ns + late_ns[0], end_ns=one.end_ns + late_ns[1])
                    if number != 9 or one.table != "time"
                    else replace(one, end_ns=one.end_ns + late_ns[1], rows=_nine_times(one.rows))
                    for one in windows
                ]
            )
    (before, held) = (read_sides([str(tmp_path / f"{name}.fsk")] * 2, ())[1] for name in ("whole", "held"))
    assert held.seconds == pytest.approx(19, abs=0.5)
    assert any(one.startswith("held.fsk has nothing of 9") for one in lacking([before], held))
    # From when to when it is told, the interval is part of.
    assert held.clock_ns((0.0, held.seconds))[1] == pytest.approx(held.end_ns, abs=SECOND)
    found = [one for one in parties([before], held, changes_of([before.node], held.node)) if one.kind == "ran"]
    assert not found, "no one had more or less time"


def _nine_times(rows: np.ndarray) -> np.ndarray:
    rows = rows.copy()
    for name in rows.dtype.names:
        if name.endswith("_ns"):
            rows[name] *= 9
    return rows


def test_recordings_that_are_mostly_the_same_count_once(side: Side):
    assert len(distinct([side, later(side, 4), later(side, 40), side])) == 2


@pytest.mark.parametrize(
    "starts, times",
    [([0, 60, 120], [0, 1, 2]), ([0, 21, 120], [0, 0, 1]), ([0, 42, 21], [0, 0, 0]), ([60, 0, 120, 15], [0, 1, 2, 1])],
)
def test_recordings_that_follow_each_other_are_one_time(side: Side, starts: list[int], times: list[int]):
    assert times_of([later(side, start) for start in starts]) == times


def test_other_boots_and_copies_of_a_machine_are_other_times(side: Side):
    rebooted = replace(side, node=replace(side.node, source=replace(side.node.source, boot_id="another")))
    copy = replace(side, node=later(side, 3600).node)
    assert times_of([side, rebooted, copy]) == [0, 1, 2] and len(distinct([side, rebooted, copy])) == 3
