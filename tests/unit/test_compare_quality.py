"""Nobody deviates in what was recorded: where much is missing that is said first, and is no exit code 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from unit.test_compare_ranks import SECOND, SECONDS, node
from unit.test_ledger import TIME

from tracer.analysis.source import Source
from tracer.compare.comparison import Comparison, compare
from tracer.compare.intake import Intake
from tracer.compare.node import Node
from tracer.compare.verdict import headline
from tracer.histogram import SLOTS
from tracer.reports.comparison import as_dict, render
from tracer.window import Window

HISTOGRAM = np.dtype([("cpu", "u4"), ("sum", "u8"), ("slots", "u4", (SLOTS,))])


def beside_eight(*others: Node) -> Comparison:
    return compare([*map(node, range(8)), *others])


def losing(lost: int, seen: int) -> Node:
    """A node of whose run-queue waits so many were seen in every second, and so many not."""
    intake = Intake(Source(host="cu09", interval_ns=SECOND, clock_offset_ns=0.0))
    rows = np.zeros(1, HISTOGRAM)
    rows["slots"][0, 100] = seen
    for second in range(SECONDS):
        window = Window("runqueue", "wait", second * SECOND, (second + 1) * SECOND, rows, {"collided": lost})
        # A probe that counts no events has no share of them to lose.
        other = Window("cpustate", "time", second * SECOND, (second + 1) * SECOND, np.zeros(0, TIME), {"unmatched": 5})
        intake.add([window, other])
    return intake.node("cu09.fsk", {}, (), 1)


@pytest.mark.parametrize("seen", [160, 0])
def test_a_share_of_a_probes_events_is_missing(seen: int):
    one = losing(840, seen)
    share, words = 840 / (840 + seen), f"{84 if seen else 100} %"
    assert one.losses == {"runqueue": pytest.approx(share)}
    assert one.remarks == (f"{words} of its runqueue events were not seen",)
    found = beside_eight(replace(node(9), losses=one.losses))
    assert headline(found, {}) == (
        f"no node deviates by more than 10 % in what was recorded: {words} of cu09's runqueue events were lost"
    )
    assert as_dict(found, {})["reservations"] == [
        {"node": "cu09", "kind": "events", "probe": "runqueue", "share": pytest.approx(share)}
    ]


def test_what_is_too_little_to_hide_a_deviation_is_no_reservation():
    found = beside_eight(replace(node(9), losses={"runqueue": 0.09}), node(10, missing=[5]))
    assert found.reservations == () and headline(found, {}) == "no node deviates by more than 10 %"


def test_a_node_that_was_not_recorded_all_the_time_is_named():
    found = beside_eight(node(9, missing=range(6, 17)))
    assert headline(found, {}) == (
        "no node deviates by more than 10 % in what was recorded: 50 % of cu09's windows were not recorded"
    )


def test_many_that_lack_much_are_counted():
    said = headline(beside_eight(*(replace(node(place), losses={"softirq": 0.28}) for place in range(20, 25))), {})
    assert said.endswith(
        "28 % of cu20's softirq events were lost and 28 % of cu21's softirq events were lost, "
        "and much of 3 other nodes is missing"
    )


def test_windows_that_nobody_recorded_are_not_counted():
    found = compare([node(place, missing=range(8, 16)) for place in range(8)])
    assert found.grid.compared == SECONDS - 8
    assert f"{SECONDS} windows of 1 s, of which {SECONDS - 8} were recorded" in " ".join(
        " ".join(render(found, {})).split()
    )


def test_windows_are_as_long_as_intervals_that_come_rarely():
    found = compare([node(place, missing=[second for second in range(SECONDS) if second % 3]) for place in range(8)])
    assert (found.grid.length_ns, found.grid.windows, found.grid.compared) == (2 * SECOND, 11, 8)


def test_what_ended_early_is_not_told_as_gaps():
    found = beside_eight(node(9, missing=range(8, SECONDS)))
    assert headline(found, {}).endswith(f"cu09's recording is of {round(100 * 7 / (SECONDS - 2))} % of the time only")


def test_a_probe_that_others_have_is_missed():
    """Not even its windows are there: that is more than its losing all events, and no other exit code."""
    lacking = [replace(node(9), told={"cpustate": 1.0}), replace(node(10), told={"cpustate": 1.0, "ledger": 0.6})]
    found = beside_eight(*lacking)
    assert [(one.label, one.kind, one.probe, one.share) for one in found.reservations] == [
        ("cu09", "probe", "ledger", 1.0),
        ("cu10", "probe", "ledger", pytest.approx(0.4)),
    ]
    assert headline(found, {}).endswith(
        "ledger was not recorded on cu09 and ledger was not recorded on cu10 40 % of the time"
    )
    # What one node recorded besides is missed on no other.
    assert beside_eight(replace(node(9), told={**node(9).told, "napi": 1.0})).reservations == ()


def test_recordings_that_were_not_compared_are_named_but_for_copies():
    nodes = [*map(node, range(8)), node(7)]
    assert compare(nodes).reservations == ()
    other = replace(node(9), facts={"cpu / model": "another"})
    found = compare([*(replace(one, facts={"cpu / model": "usual"}) for one in nodes), other], ["/bad/a.fsk", "b.fsk"])
    assert headline(found, {}).endswith("in what was recorded: a.fsk, b.fsk and 1 more were not compared")
    (known,) = compare(nodes, ["b.fsk"]).reservations
    assert known.sentence == "b.fsk was not compared"
