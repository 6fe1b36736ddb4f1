"""The live view: a pure function that fits its screen, says the worst first and hides the rest openly."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest
from unit.synthetic import HEADER, MS, SECOND, Node, filled, hog_interval

from tracer.analysis.source import Source
from tracer.reports.json import dumps
from tracer.reports.state import RECENT, SORTS, TopState
from tracer.reports.top import render, snapshot
from tracer.units import display_width


def watched(cpus: int = 8, ill: bool = True) -> TopState:
    node, state = Node(cpus), TopState(Source.from_header(HEADER))
    for number in range(6):
        state.push(hog_interval(node) if ill and number == 3 else node.interval())
    return state


@cache
def kept(cpus: int) -> TopState:
    """The same, made once: for tests that only look at it."""
    return watched(cpus)


@pytest.mark.parametrize("cpus", [2, 8, 200])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (200, 60), (20, 3), (1, 1)])
@pytest.mark.parametrize("color", [False, True])
def test_fills_exactly_its_screen(cpus, width, height, color):
    lines = render(kept(cpus), width, height, color)
    assert len(lines) == height
    if not color:
        assert max(display_width(line) for line in lines) <= width
        assert not any("\x1b" in line for line in lines)


def test_at_80x24_it_says_who_where_and_how_to_leave():
    lines = render(watched())
    screen = "\n".join(lines)
    assert "gpu-0417" in lines[0] and "6.18.44" in lines[0] and "UTC" in lines[0] and "every 1 s" in lines[0]
    assert lines[1].startswith("!! CPU 1: ") and "hog[1234]" in screen
    assert any(line.startswith("!  1 ") for line in lines)
    assert "0 lost" in screen and "cost" in screen and "no stalls" in screen
    assert "q quit" in lines[-1] and "live" in lines[-1]


def test_the_worst_cpus_are_shown_and_the_hidden_ones_counted():
    lines = render(kept(200), 80, 24)
    shown = [line for line in lines if re.match(r"[! ] +\d+ +\d+% ", line)]
    assert shown[0].startswith("!  1 ")
    assert f" {200 - len(shown)} CPUs not shown" in lines


def test_before_the_first_interval():
    lines = render(TopState(Source.from_header(HEADER)))
    assert "waiting for the first interval" in lines[0]
    assert len(lines) == 24


def test_a_past_interval_stays_visible_in_the_column_of_the_last_ten():
    state = watched()
    row = next(line for line in render(state) if line.startswith("!  1 "))
    assert " 1s " in row
    for _ in range(RECENT):
        state.push(Node().interval())
    assert not any(line.startswith("!") for line in render(state))


def test_sorting_goes_round():
    state = watched()
    orders = []
    for _ in SORTS:
        orders.append(re.findall(r"^[! ] +(\d+) +[\d.]+% ", "\n".join(render(state, 80, 40)), re.M))
        state.next_sort()
    assert state.sort == SORTS[0]
    assert orders[3] == [str(cpu) for cpu in range(8)]


def test_stepping_shows_the_intervals_asked_for():
    node = Node()
    intervals = [node.interval() for _ in range(30)]
    state = TopState(Source.from_header(HEADER), position="12 of 30", paused=True)
    state.show(intervals[:12])
    assert state.recent.intervals.count == RECENT
    assert state.last.intervals.end_ns == intervals[11][0].end_ns
    assert "PAUSED" in render(state)[-1]


def test_hostile_names_stay_text():
    node, state = Node(), TopState(Source.from_header(HEADER | {"host": "\x1b[2Jhost"}), message="\x1b[1mboo")
    row = {"cpu": 1, "waited_cpu": 1, "comm": b"\x1b[2J", "holder_pid": 5, "holder_comm": b"a\nb\x07"}
    state.push(node.interval(waits={1: [90 * MS]}, worst=[row | filled(90 * MS, 0.9)]))
    assert not any(set(line) & {"\x1b", "\x07", "\n"} for line in render(state, 120, 40))


def test_json_is_the_same_state():
    found = json.loads(dumps(watched().as_dict()))
    assert found["schema"] == "foreshock.top/1"
    assert found["interval"]["time"]["intervals"] == 1
    assert found["recent"]["time"]["seconds"] == 6 * SECOND / 1e9
    assert "hog" in found["recent"]["verdict"]["findings"][0]["who"]


def test_titles_say_what_columns_are_and_the_last_fits():
    lines = render(watched())
    head = next(place for place, line in enumerate(lines) if line.startswith(" CPU"))
    assert re.split(r" {2,}", lines[head - 1].strip()) == ["run-queue wait", "softirq late", "hardirq run"]
    titles = "CPU busy intr p50 p99 max max10 p99 max max10 p99 max10"
    assert " ".join(lines[head].split()) == titles
    assert "max10: of 10 intervals" in lines[-1]
    assert not any("…" in line for line in lines[head - 1 : head + 8])


def test_a_small_terminal_shows_who_and_the_worst_of_each_cpu():
    lines = render(watched(), 40, 10)
    screen = "\n".join(lines)
    assert "CPU 1: long waits for a CPU." in screen and "hog[1234]" in screen
    assert " ".join(lines[4].split()) == "CPU busy intr wait softirq hardirq" and "worst of 10 intervals" in lines[3]
    assert lines[5].startswith("!  1 ") and " 1s " in lines[5]
    assert "own cost" in lines[-2] and "0 lost" in lines[-2]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 40)])
def test_what_was_lost_takes_lines_that_are_free_and_hides_nothing(width, height):
    node, state = Node(2), TopState(Source.from_header(HEADER))
    state.push(node.interval(losses={f"reason{number}": number for number in range(1, 12)}))
    lines = render(state, width, height)
    assert "no stalls" in next(line for line in lines if "own cost" in line)
    assert "reason11 11" in lines[-2] and not any("…" in line for line in lines[-4:])


def test_tables_leave_room_for_what_was_lost():
    state = watched(200)
    state.push(Node(200).interval(losses={f"reason{number}": number for number in range(1, 9)}))
    lines = render(state, 80, 24)
    footer = "".join(lines[next(place for place, line in enumerate(lines) if "own cost" in line) :])
    assert "CPUs not shown" in "".join(lines) and "reason8 8" in footer and "…" not in footer


def test_notes_that_find_no_room_are_cut():
    state = watched(200)
    state.message = "word " * 100
    lines = render(state, 80, 24)
    assert "no stalls" in lines[-4] and lines[-2].endswith("…") and len(lines) == 24


def test_interrupts_of_the_last_ten_intervals_count_for_the_mark():
    node, state = Node(2), TopState(Source.from_header(HEADER))
    windows = node.interval()
    lines = next(one for one in windows if one.probe == "hardirq")
    lines.rows["slots"][0, 250] = 1
    state.push(windows)
    state.push(node.interval())
    assert any(line.startswith("!") for line in render(state))


def test_a_printout_ends_with_losses_cost_and_the_meaning_of_its_columns():
    state = watched()
    lines = snapshot(state, 80)
    assert len(lines) <= 24 and max(map(display_width, lines)) <= 80
    end = " ".join(lines[-3:])
    assert "own cost 0.3 % CPU" in end and "0 lost" in end
    assert "max10: the worst of the last 6 intervals; worst first by wait" in end
    assert not any("q quit" in line or not line for line in lines)


def test_a_filter_and_events_that_are_only_not_told_one_by_one():
    state = TopState(Source.from_header(HEADER | {"filters": {"pid": "17"}}))
    state.push(Node().interval(losses={"suppressed": 900}))
    lines = render(state, 120)
    assert "waits of pid 17 only" in lines[0] and "0 lost" in lines[-2]


def test_other_findings_are_named_in_plain_words():
    screen = "\n".join(render(watched()))
    assert "and 1 more: late NET_RX softirqs (CPU 1)" in screen and "softirq.delay" not in screen
    node, state = Node(), TopState(Source.from_header(HEADER))
    state.push(node.interval(losses={"collided": 900}))
    assert render(state)[1:3] == ["Nothing stands out in 1 s.", "   caveat: lost events"]
