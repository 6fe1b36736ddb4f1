"""Ranks of a job beside each other: one that hangs while its peers run, and one for which all others wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from unit.test_compare_ranks import FILE, SECOND
from unit.test_jobs import members, row

from tracer.analysis.source import Source
from tracer.compare.alignment import align
from tracer.compare.comparison import Comparison, compare
from tracer.compare.intake import Intake
from tracer.compare.node import Node, RankTime
from tracer.compare.ranks import Apart, apart
from tracer.compare.saying import summed
from tracer.compare.verdict import headline
from tracer.reports.comparison import as_dict, render
from tracer.window import Window

SECONDS, RANKS_EACH, NODES = 12, 4, 8
#: The recordings begin with this second of the node, and so long after its start a rank is no young one.
FIRST = 1000
#: What a rank runs of the time in a second of the recording: by rank and second; None: it has no row.
Runs = Callable[[int, int], float | None]


def recorded(
    number: int,
    runs: Runs,
    seconds: int = SECONDS,
    sleep: str = "futex_ns",
    others: float = 0.01,
    began: int = 1,
    until: int = 10**6,
    worked: float | None = None,
    **of: Any,
) -> Node:
    """A node with four ranks, begun in second ``began`` of the node and gone ``until``."""
    name = f"cu{number:02}"
    intake = Intake(Source(host=name, boot_id=name, interval_ns=SECOND, clock_offset_ns=0.0, **of))
    ranks = range(number * RANKS_EACH, (number + 1) * RANKS_EACH)
    for second in range(seconds):
        rows = []
        for rank in ranks:
            share = runs(rank, second)
            if share is not None and second < until:
                one = np.zeros(1, FILE)
                one["pid"], one["wall_ns"], one["running_ns"] = 100 + rank, SECOND, share * SECOND
                one[sleep] = (1 - share) * SECOND
                # Who wants to run and can't is no sleeper.
                one["running_ns"] -= one["running_ns"] // 2
                one["waiting_ns"] = one["running_ns"]
                rows.append(one)
        rest = np.zeros(1, FILE)
        rest["running_ns"] = others * SECOND
        begin, end = (FIRST + second) * SECOND, (FIRST + second + 1) * SECOND
        told = []
        if second in (0, until):
            ended = int(second == until)
            rows_of = [row(100 + rank, rank, began_ns=began * SECOND, ended=ended) for rank in ranks]
            table = members(*rows_of, end_ns=end)
            if worked is None:
                # As recordings were before that was read.
                older = [name for name in table.rows.dtype.names or () if name != "used_ns"]
                table = replace(table, rows=table.rows[older].copy())
            else:
                table.rows["used_ns"] = worked * (FIRST + second - began) * SECOND
            told = [table]
        window = Window("ledger", "time", begin, end, np.concatenate([*rows, rest]))
        intake.add([replace(one, start_ns=begin) for one in (*told, window)])
    return intake.node(f"{name}.fsk", {}, (), 1)


def node(
    number: int, ran: dict[int, float] | None = None, usual: float = 0.96, others: float = 0.01, **of: object
) -> Node:
    """A node with four ranks that run ``usual`` of the time but for those in ``ran``; below 0 they have no row."""

    def runs(rank: int, second: int) -> float | None:
        share = (ran or {}).get(rank, usual)
        return share if share >= 0 else None

    return recorded(number, runs, others=others, **of)


def cluster(*ill: Node) -> Comparison:
    known = {one.path: one for one in ill}
    return compare([known.get(f"cu{place:02}.fsk") or node(place) for place in range(NODES)])


@pytest.mark.parametrize(("ran", "told", "why"), [(0.01, "99 %", " for other threads"), (-1, "100 %", "")])
def test_a_rank_that_hangs_is_named_with_what_it_sleeps_for(ran: float, told: str, why: str):
    found = cluster(node(3, {12: ran}))
    said = headline(found, {})
    assert said.startswith(
        f"rank 12 of job 48213 on cu03 waits: it slept {told} of the time{why}, its 31 peers 4 %; "
        "it hangs, is a victim or only coordinates"
    )
    assert found.deviates
    (one,) = as_dict(found, {})["ranks"]
    assert (one["node"], one["rank"], one["kind"], one["peers"]) == ("cu03", 12, "waits", 31)
    assert one["slept_share"] == pytest.approx(1 - max(ran, 0)) and one["peers_slept_share"] == pytest.approx(0.04)


def test_a_rank_that_all_others_wait_for_is_named():
    found = compare([node(place, {12: 0.99}, usual=0.02) for place in range(NODES)])
    said = "rank 12 of job 48213 on cu03 runs while its 31 peers wait: it slept 1 % of the time, they 98 %"
    assert said in headline(found, {})


def test_several_are_counted_and_each_has_its_line():
    found = cluster(node(3, {12: 0.01, 13: 0.0}), node(5, {20: 0.02}))
    assert headline(found, {}) == (
        "3 of 32 ranks of job 48213 wait (12, 13, 20): they slept 99 % of the time for other threads, the other 29 "
        "4 %; they hang, are victims or only coordinate; otherwise the nodes are alike within 10 %"
    )
    lines = "\n".join(render(found, {}, width=200)).partition("RANKS")[2]
    assert [f"rank {rank} of job 48213 on" in lines for rank in (12, 13, 20)] == [True] * 3


@pytest.mark.parametrize(
    ("worked", "said"),
    [
        (None, "4 %; it hangs, is a victim or only coordinates"),
        (0.96, "; before the recording its processes used 96 % of a CPU: it hangs, or is a victim"),
        (0.05, "; before the recording its processes used 5 % of a CPU: it hangs, is a victim or only coordinates"),
        (
            0.0,
            "; before the recording its processes used 0 % of a CPU: it hangs since the beginning, or only coordinates",
        ),
    ],
)
def test_what_a_sleeper_did_before_the_recording_says_what_it_may_be(worked: float | None, said: str):
    found = cluster(node(3, {12: 0.01}, worked=worked))
    assert f"{said}; otherwise the nodes" in headline(found, {})
    (one,) = as_dict(found, {})["ranks"]
    assert one["worked_share"] == (
        pytest.approx(worked, abs=0.002) if worked is not None else pytest.approx(np.nan, nan_ok=True)
    )


def test_a_rank_that_had_just_begun_has_done_nothing_yet():
    (one,) = cluster(node(3, {12: 0.01}, worked=0.0, began=FIRST - 30)).ranks
    assert np.isnan(one.worked)


def test_of_several_all_have_to_have_worked():
    worked, idle = node(3, {12: 0.01}, worked=0.9), node(5, {20: 0.02}, worked=None)
    assert "; they hang, are victims or only coordinate; otherwise" in headline(cluster(worked, idle), {})
    idle = node(5, {20: 0.02}, worked=0.7)
    assert "before the recording their processes used 80 % of a CPU: they hang, or are victims;" in headline(
        cluster(worked, idle), {}
    )


@pytest.mark.parametrize("usual", [0.96, 0.1])
def test_ranks_that_do_alike_are_not_named(usual: float):
    found = compare([node(place, usual=usual) for place in range(NODES)])
    assert found.ranks == () and headline(found, {}) == "no node deviates by more than 10 %"


def test_who_may_be_among_others_or_was_not_traced_is_not_told_to_sleep():
    crowded = node(3, {12: -1}, others=0.5)
    filtered = node(3, {12: -1}, filters=(("pid", "113"),))
    for one in (crowded, filtered):
        assert ("job 48213", 12) not in one.ranks and len(one.ranks) == RANKS_EACH - 1


def test_two_peers_tell_nothing():
    assert len(node(0, {0: 0.01}).ranks) == RANKS_EACH
    few = replace(node(0, {0: 0.01}), ranks={key: one for key, one in node(0, {0: 0.01}).ranks.items() if key[1] < 3})
    assert compare([few, replace(node(1), ranks={})]).ranks == ()


def shares(*awake: float) -> tuple[Apart, ...]:
    """Ranks of which each was awake for so many times the wall time, on nodes of their own."""
    wall = np.full(SECONDS, float(SECOND))
    times = [RankTime(wall, share * wall, {"futex_ns": np.ones(SECONDS)}) for share in awake]
    nodes = [
        replace(node(place), source=Source(host=f"cu{place}"), ranks={("job 7", place): time})
        for place, time in enumerate(times)
    ]
    return compare(nodes).ranks


@pytest.mark.parametrize(
    ("awake", "waiting"),
    [
        # Sixteen threads against one: who is awake all the time does not sleep.
        ((16, 16, 16, 1), []),
        ((1, 0, 1, 0, 1, 0, 1, 0), [1, 3, 5, 7]),
        ((1, 1, 1, 0, 0, 0, 0, 0), [3, 4, 5, 6, 7]),
        ((1, 1, *[0] * 38), [*range(2, 40)]),
        # Ranks that hardly run, and two that do now and then.
        ((0.3, 0.3, *[0.02] * 20), []),
    ],
)
def test_whoever_sleeps_hangs_however_many_they_are(awake: tuple[float, ...], waiting: list[int]):
    found = shares(*awake)
    assert [(one.kind, one.rank) for one in found] == [("waits", rank) for rank in waiting]
    assert not found or summed(found).startswith(f"{len(waiting)} of {len(awake)} ranks of job 7 wait (")


def test_one_for_whom_all_wait_is_named_only_where_all_do():
    assert [(one.kind, one.rank, one.peers) for one in shares(1, 0, 0, 0, 0)] == [("runs", 0, 4)]
    assert [(one.kind, one.rank) for one in shares(1, 0.15, 0, 0, 0)] == [("waits", rank) for rank in (2, 3, 4)]


def test_two_recordings_of_a_node_have_the_same_ranks():
    one = node(3, {12: 0.01})
    (found,) = apart(align([one, replace(one, path="again.fsk")])[0], ["cu03 (a)", "cu03 (b)"])
    assert (found.rank, found.of, found.peers) == (12, 4, 3)
