"""Sentinels stand as far apart as the machine allows."""

from __future__ import annotations

import pytest

from tracer.agent.placing import choose

#: Two sockets of two cores of two threads each: CPU 4 is CPU 0's sibling, as Linux numbers them.
TWO_SOCKETS = {cpu: (cpu // 2 % 2, cpu % 2) for cpu in range(8)}


def test_different_sockets_come_first():
    first, second = choose(TWO_SOCKETS, 2)
    assert TWO_SOCKETS[first][0] != TWO_SOCKETS[second][0]


def test_then_different_cores():
    one_socket = {cpu: place for cpu, place in TWO_SOCKETS.items() if place[0] == 0}
    first, second = choose(one_socket, 2)
    assert one_socket[first] != one_socket[second]


def test_siblings_are_better_than_one():
    assert choose({0: (0, 0), 4: (0, 0)}, 2) == [0, 4]


@pytest.mark.parametrize(("cpus", "count"), [([], 0), ([5], 1), ([1, 2], 2)])
def test_there_are_no_more_than_cpus(cpus, count):
    chosen = choose({cpu: (0, cpu) for cpu in cpus}, 2)
    assert sorted(chosen) == cpus and len(chosen) == count


def test_one_that_is_placed_anew_keeps_away_from_the_others():
    (cpu,) = choose(TWO_SOCKETS, 1, taken=[0])
    assert TWO_SOCKETS[cpu][0] != TWO_SOCKETS[0][0]
    assert choose({0: (0, 0)}, 1, taken=[0]) == []
