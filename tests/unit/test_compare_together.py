"""Nodes that deviate in the same at once have a common cause; different faults, or different times, are as many."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from unit.test_compare_ranks import SINCE, node
from unit.test_ledger import SECOND

from tracer.compare.atonce import most_at_once
from tracer.compare.comparison import Comparison, compare
from tracer.compare.verdict import headline
from tracer.reports.comparison import as_dict, render

NODES = 20
#: Faults, what each takes of the ranks' time, and the class that it is; all of them make ranks wait for CPUs as well.
FAULTS = {
    "throttled": (400, "quota"),
    "file": (350, "storage"),
    "reclaim": (300, "memory"),
    "waiting": (250, "scheduler"),
    "wait_softirq": (200, "softirq"),
    "wait_hardirq": (150, "interrupts"),
}


def cluster(ill: dict[int, dict[str, float]], since: dict[int, int] | None = None) -> Comparison:
    begins = {place: (since or {}).get(place, SINCE) for place in range(NODES)}
    return compare([node(place, ill.get(place), since=begins[place]) for place in range(NODES)])


def test_different_faults_at_once_are_as_many_stragglers_the_worst_first():
    ill = {
        place: {name: ms, "waiting": max(120, ms * (name == "waiting"))}
        for place, (name, (ms, _)) in enumerate(FAULTS.items())
    }
    found = cluster(ill)
    assert [(one.label, one.cause) for one in found.suspects] == [
        (f"cu{place:02}", cause) for place, (_, cause) in enumerate(FAULTS.values())
    ]
    assert (found.common, found.unfelt) == ((), ())
    assert headline(found, {}).startswith("6 of 20 nodes are stragglers: cu00 (ranks' time held back by a quota")
    table = [
        line.split()[0]
        for line in render(found, {}, width=100)
        if line.startswith("  cu0") and ":" not in line.split()[0]
    ]
    assert table == [one.label for one in found.suspects]


@pytest.mark.parametrize("ms", [200, 400])
def test_the_same_at_once_is_a_common_cause(ms: int):
    found = cluster({place: {"waiting": ms} for place in range(6)})
    assert found.suspects == ()
    (common,) = found.common
    assert {label for label, _ in common.changed} == {f"cu{place:02}" for place in range(6)}
    assert headline(found, {}).startswith("common cause: 6 of 20 nodes deviate together in ranks' time waiting")


def test_the_same_at_different_times_is_none():
    found = cluster(dict.fromkeys(range(6), {"waiting": 300}), {place: 8 + place // 2 * 5 for place in range(6)})
    assert {one.label for one in found.suspects} == {f"cu{place:02}" for place in range(6)}
    assert found.common == ()


def test_beside_a_common_cause_another_fault_is_found():
    found = cluster({**{place: {"waiting": 200} for place in range(6)}, 9: {"file": 300}})
    assert [(one.label, one.cause) for one in found.suspects] == [("cu09", "storage")]
    assert len(found.common) == 1


def test_at_once_is_within_a_few_windows():
    assert sorted(most_at_once({0: 3, 1: 9, 2: 10, 3: 12, 4: 13})) == [1, 2, 3]
    assert most_at_once({}) == []


def test_nearly_all_at_once_is_a_common_cause():
    found = cluster({place: {"waiting": 300} for place in range(18)})
    assert found.suspects == () and len(found.common[0].changed) == 18
    assert headline(found, {}).startswith(
        "common cause: 18 of 20 nodes deviate together in ranks' time waiting for a CPU since 00:00:10 UTC, most of all"
    )


def test_a_rack_that_is_slow_all_along_is_told_with_what_it_has():
    nodes = [node(place, {"waiting": 300} if place < 5 else None, since=0) for place in range(NODES)]
    found = compare([replace(one, facts={"nic": "old" if place < 5 else "new"}) for place, one in enumerate(nodes)])
    assert found.suspects == () and found.deviates
    assert re.match(
        r"common cause: 5 of 20 nodes are worse from the start in ranks' time waiting for a CPU: "
        r"cu0\d \(×[\d.]+\), cu0\d, cu0\d and 2 more",
        headline(found, {}),
    )
    assert "nearly all of these, and not the others: nic old (others new)" in "\n".join(render(found, {}, width=100))
    (common,) = as_dict(found, {})["common"]
    assert common["lasting"] and common["changed"] == 5 and len(common["members"]) == 5


def test_two_kinds_are_two_kinds_at_different_times_too():
    """Recordings made one after the other have no moment in common, and a start each."""
    nodes = [node(place, {"waiting": 300} if place < 5 else None, since=0) for place in range(NODES)]
    later = [
        replace(one, first=one.first + 1000 * place, start_ns=one.start_ns + shift, end_ns=one.end_ns + shift)
        for place, one in enumerate(nodes)
        for shift in [1000 * place * SECOND]
    ]
    found = compare(later)
    assert found.grid.by_start and found.deviates and len(found.together) == 1
    assert not any("at different times, no common cause" in line for line in render(found, {}, width=200))


def test_what_began_while_nothing_was_recorded_began_in_between():
    ill = node(99, {"throttled": 300}, since=12, missing=range(9, 14))
    (suspect,) = compare([*map(node, range(10)), ill]).suspects
    assert (suspect.gap_ns, suspect.since_ns, suspect.since_window) == (9 * SECOND, 14 * SECOND, 14)
    said = headline(compare([*map(node, range(10)), ill]), {})
    assert "since a moment between 00:00:09 and 00:00:14 UTC" in said


def test_of_two_nodes_either_may_have_changed():
    said = headline(compare([node(1), node(2, {"throttled": 400})]), {})
    assert said.startswith("node cu02 may be the straggler: ranks' time held back by a quota")
    assert said.endswith("; or cu01 was slower before: two nodes don't tell")
