"""Ranks that begin to hang amid a recording are told with the moment; what jobs do by themselves is no hang."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from unit.test_compare_apart import FIRST, NODES, Runs, node, recorded
from unit.test_compare_ranks import SECOND

from tracer.analysis.source import Source
from tracer.compare.alignment import align
from tracer.compare.comparison import Comparison, compare
from tracer.compare.node import RankTime
from tracer.compare.ranks import Apart, apart
from tracer.compare.verdict import headline
from tracer.reports.comparison import as_dict, render

BUSY = 0.96
LONG = 120


def cluster(runs: Runs, seconds: int = LONG, **of: object) -> Comparison:
    return compare([recorded(place, runs, seconds, **of) for place in range(NODES)])  # type: ignore[arg-type]


def hangs(since: dict[int, int], until: int = LONG) -> Runs:
    return lambda rank, second: 0.01 if since.get(rank, LONG) <= second < until else BUSY


@pytest.mark.parametrize("since", [50, 70, 100])
def test_a_rank_that_begins_to_hang_is_told_with_the_moment(since: int):
    found = cluster(hangs({12: since}))
    (one,) = as_dict(found, {})["ranks"]
    assert (one["node"], one["rank"], one["kind"], one["peers"], one["lasting"]) == ("cu03", 12, "waits", 31, False)
    assert one["since_unix_s"] == pytest.approx(FIRST + since, abs=1)
    assert one["slept_share"] > 0.95 and one["before_slept_share"] == pytest.approx(0.04, abs=0.02)
    said = headline(found, {})
    assert said.startswith("rank 12 of job 48213 on cu03 waits since 00:1")
    assert "since then for other threads (4 % before), its 31 peers 4 %; it hangs, or is a victim" in said


def test_of_several_the_first_is_named_and_each_has_its_moment():
    found = cluster(hangs({20: 80, 12: 60}))
    said = headline(found, {})
    assert said.startswith("2 of 32 ranks of job 48213 wait (12, 20), rank 12 first since 00:17:")
    assert "they slept 99 % of the time since then for other threads, the other 30 4 %" in said
    lines = "\n".join(render(found, {}, width=200)).partition("RANKS")[2]
    assert lines.index("rank 12 of job") < lines.index("rank 20 of job") and lines.count(" waits since 00:1") == 2


def test_one_for_whom_all_begin_to_wait_is_told_with_the_moment():
    found = cluster(lambda rank, second: BUSY if second < 40 or rank == 12 else 0.02)
    (one,) = found.ranks
    assert (one.kind, one.rank, one.peers, one.since_ns) == ("runs", 12, 31, (FIRST + 40) * 1e9)
    assert "rank 12 of job 48213 on cu03 runs while its 31 peers wait since 00:17:20 UTC: it slept 4 %" in headline(
        found, {}
    )


def test_who_wakes_for_a_moment_still_hangs():
    found = cluster(lambda rank, second: 0.01 if rank == 12 and second >= 50 and second not in (80, 81) else BUSY)
    assert [(one.rank, one.lasting) for one in found.ranks] == [(12, False)]


def test_a_rank_that_is_told_from_the_start_has_no_moment():
    (one,) = cluster(hangs({12: 0})).ranks
    assert one.lasting and one.since_ns != one.since_ns


#: What the ranks of a job do by themselves, and how the recordings differ.
BENIGN: dict[str, tuple[Runs, dict[str, object]]] = {
    "one starts late": (lambda rank, second: 0.0 if rank == 12 and second < 100 else BUSY, {}),
    "one has started and waits for the others": (
        lambda rank, second: 0.0 if rank == 12 and second >= 80 else BUSY,
        {"began": FIRST},
    ),
    "one writes a checkpoint": (
        lambda rank, second: 0.02 if rank == 0 and second >= 80 else BUSY,
        {"sleep": "disk_ns"},
    ),
    "all wait for one that evaluates": (lambda rank, second: BUSY if rank == 0 or second < 80 else 0.0, {}),
    "they take turns": (lambda rank, second: BUSY if second // 15 % 4 == rank % 4 else 0.0, {}),
    "halves take turns": (lambda rank, second: BUSY if second // 40 % 2 == rank % 2 else 0.0, {}),
    "all read": (lambda rank, second: BUSY if second % 60 < 30 else 0.01, {}),
    "all wait at the end": (lambda rank, second: BUSY if second < 80 else 0.01, {}),
    "one waited and goes on": (lambda rank, second: 0.01 if rank == 12 and 40 <= second < 110 else BUSY, {}),
    "one is done before the others": (
        lambda rank, second: 0.01 if rank == 12 and second >= 50 else BUSY,
        {"until": 90},
    ),
    "one is gone": (lambda rank, second: None if rank == 12 and second >= 80 else BUSY, {}),
    "one began to wait right now": (lambda rank, second: 0.01 if rank == 12 and second >= 112 else BUSY, {}),
}


@pytest.mark.parametrize("what", BENIGN)
def test_what_jobs_do_by_themselves_is_no_hang(what: str):
    runs, of = BENIGN[what]
    assert [(one.kind, one.rank, one.lasting) for one in cluster(runs, **of).ranks] == []


def of_shares(shares: np.ndarray, window_s: int) -> tuple[Apart, ...]:
    """What is said of ranks that were awake for ``shares`` of windows, (ranks, windows)."""
    wall = np.full(shares.shape[1], window_s * float(SECOND))
    blank = node(0)
    nodes = [
        replace(
            blank,
            source=Source(host=f"cu{place}", clock_offset_ns=0.0),
            length_ns=window_s * SECOND,
            first=0,
            start_ns=0,
            end_ns=shares.shape[1] * window_s * SECOND,
            seen_ns=wall,
            numbers={},
            ranks={("job 7", place): RankTime(wall, share * wall, {"futex_ns": wall})},
        )
        for place, share in enumerate(shares)
    ]
    return apart(align(nodes)[0], [one.source.host for one in nodes])


def benign(random: np.random.Generator, windows: int) -> np.ndarray:
    """Shares of 4 to 64 ranks of a job that has phases: a start, steps, I/O, turns and an end, each its own way."""
    ranks = int(random.integers(4, 65))
    usual = random.uniform(0.3, 1)
    shares = np.full((ranks, windows), usual) * random.normal(1, 0.05, (ranks, windows))
    some = random.random(ranks) < random.choice([1 / ranks, 0.3, 0.6, 1])
    match random.choice(["start", "io", "turns", "halves", "burst", "masters"]):
        case "start":
            # They begin to run at different times.
            for rank, begin in enumerate(random.integers(0, windows // 3, ranks)):
                shares[rank, :begin] = random.uniform(0, 0.05)
        case "io":
            period, length = int(random.integers(8, 20)), int(random.integers(1, 5))
            at_io = (np.arange(windows) + random.integers(period)) % period < length
            shares[np.ix_(some, at_io)] *= 0.02
        case "turns":
            turn, groups = int(random.integers(1, 5)), int(random.integers(2, 5))
            shares[(np.arange(windows) // turn % groups)[None] != (np.arange(ranks) % groups)[:, None]] = 0.0
        case "halves":
            turn = int(random.integers(1, 8))
            shares[(np.arange(windows) // turn % 2)[None] != (np.arange(ranks) % 2)[:, None]] *= 0.03
        case "burst":
            shares *= random.choice([0.01, 1], shares.shape, p=[0.3, 0.7])
        case "masters":
            shares[some] *= random.uniform(0.15, 1)
    return np.clip(shares, 0, None)


def test_jobs_with_phases_of_any_kind_accuse_nobody():
    random = np.random.default_rng(1)
    for _ in range(200):
        shares = benign(random, int(random.integers(20, 40)))
        assert of_shares(shares, int(random.choice([1, 4, 16]))) == ()


def test_hangs_are_found_amid_phases_of_a_job():
    random = np.random.default_rng(2)
    off = []
    for _ in range(60):
        shares = benign(random, 36)
        onset, rank = int(random.integers(8, 20)), int(random.integers(len(shares)))
        shares[rank, onset:] = 0.005
        off += [one.since_ns / 16e9 - onset for one in of_shares(shares, 16) if one.rank == rank]
    # Where ranks sleep for long and go on nobody can know; and who slept when it began to hang did so before.
    assert (len(off), sum(abs(one) <= 1 for one in off)) == (49, 43)
