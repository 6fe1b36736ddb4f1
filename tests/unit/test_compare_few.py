"""Two nodes of which one has nothing to do: the one that works may be slow, the idle one is not said to be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sim.recordings import Change, slower, write_twins
from unit.test_compare_report import compared, run

from tracer.window import Window

#: An idle CPU has to wake up, and its caches are cold: twice as long.
COLD = slower(("hardirq", "run"), 8)
WAITS = slower(("runqueue", "wait"), 60)


def at_work(share: float, besides: Change) -> Change:
    """All CPUs of a node run tasks for such a share of the time that they are not interrupted."""

    def changed(number: int, window: Window) -> Window:
        if (window.probe, window.table) == ("cpustate", "time"):
            rows = window.rows.copy()
            free = rows["running_ns"] + rows["idle_ns"]
            rows["running_ns"] = (free * share).astype(free.dtype)
            rows["idle_ns"] = free - rows["running_ns"]
            window = replace(window, rows=rows)
        return besides(number, window)

    return changed


@pytest.mark.parametrize("nodes", [2, 3])
def test_the_idle_one_has_less_to_do_and_is_no_straggler(tmp_path: Path, nodes: int):
    idle = dict.fromkeys(range(1, nodes), at_work(0.01, COLD))
    done = run(*write_twins(tmp_path, nodes, {0: at_work(1.0, WAITS), **idle}))
    said = " ".join(done.stdout.split())
    assert done.exit_code == 1 and said.startswith("node cu00 may be the straggler: run-queue wait p")
    assert "each in its own way" not in said
    # Of three it is the usual one.
    assert ("; cu01 has less to do (idle time 9" in said) == (nodes == 2)


def test_what_costs_much_counts_on_an_idle_node_as_well(tmp_path: Path):
    much = at_work(0.01, slower(("softirq", "delay"), 96))
    found = compared(write_twins(tmp_path, 2, {0: at_work(1.0, lambda number, window: window), 1: much}))
    assert [one.label for one in found.suspects] == ["cu01"]


def test_nothing_but_idle_time_is_no_deviation(tmp_path: Path):
    done = run(*write_twins(tmp_path, 2, {0: at_work(1.0, lambda number, window: window), 1: at_work(0.01, COLD)}))
    said = " ".join(done.stdout.split())
    assert done.exit_code == 0 and said.startswith("no node deviates by more than 25 %; cu01 has less to do (idle ")
