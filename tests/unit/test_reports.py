"""The summary as text and as JSON: the same content, safe to print, readable in 80 columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from unit.synthetic import HEADER, MS, SECOND, Node, filled, histogram, hog_interval

from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.reports import json as json_report
from tracer.reports import text
from tracer.reports.layout import Column, Style, plain_ascii, table, wrap
from tracer.units import MISSING, display_width
from tracer.window import Window

HOSTILE = b"\x1b[2J\x1b]0;x\x07\nok"


def hostile_interval(node: Node) -> list[Window]:
    row = {"cpu": 1, "waited_cpu": 1, "pid": 7, "comm": HOSTILE[:15], "cgroup": b"/\xe2\x80\xaegnp"}
    row |= {"holder_pid": 8, "holder_comm": HOSTILE[:15], "holder_cgroup": b"/bad\x9bname\xff", **filled(90 * MS, 0.9)}
    return node.interval(
        waits={1: [90 * MS]}, worst=[row], links={b"\x1b[31meth": {"rx_bytes": 10**9, "rx_missed": 9**5}}
    )


def summarised(ill: Callable[[Node], Sequence[Window]] | None = None, cpus: int = 8) -> Summary:
    node, summary = Node(cpus), Summary(SECOND)
    for number in range(5):
        summary.add_interval(ill(node) if ill and number == 2 else node.interval())
    return summary


def rendered(summary: Summary, width: int = 80, color: bool = False, **header: object) -> list[str]:
    source = Source.from_header(HEADER | header)
    return text.render(summary, judge(summary), source, title="n.fsk", width=width, color=color)


def tree(summary: Summary) -> dict[str, object]:
    return json.loads(json_report.dumps(json_report.as_dict(summary, judge(summary), Source.from_header(HEADER))))


def test_the_verdict_comes_first_then_tables_losses_and_cost():
    lines = rendered(summarised(hog_interval))
    assert lines[0] == "gpu-0417 · Linux 6.18.44 · 8 CPUs · boot 0a1b2c3d · n.fsk"
    assert "UTC" in lines[1] and "5 s" in lines[1]
    titles = [line.split("  ")[0] for line in lines if re.match(r"[A-Z]{3}", line)]
    assert titles[0] == "VERDICT"
    assert titles[1:4] == ["RUN QUEUE", "WORST WAITS", "CPU TIME"]
    assert titles[-2:] == ["LOSSES", "COST"]


def test_other_series_and_losses_are_told_in_their_probes_words():
    summary = summarised()
    summary.losses.add("runqueue", {"unmatched": 3, "new_reason": 2})
    told = " ".join(" ".join(rendered(summary)).split())
    assert "cpustall.feed: how long the kernel's watchdog waited for its thread" in told
    assert "runqueue: 3 unmatched (tasks that ran without a wait having been noted), 2 new_reason; 0 of " in told


def test_a_quantile_that_single_values_decide_is_not_told():
    summary = Summary(SECOND)
    waits = histogram([("cpu", "u4")], {(0,): [MS] * 142, (1,): [MS] * 3})
    summary.add_interval([Window("runqueue", "wait", 0, SECOND, waits)])
    rows = {line.split()[0]: line.split() for line in rendered(summary, 100) if re.match(r" +\d ", line)}
    assert [cell for cell in rows["0"][2:] if cell == "–"] == ["–"] * 2, "p99 and p99.9"
    assert [cell for cell in rows["1"][2:] if cell == "–"] == ["–"] * 4
    (one,) = (one for one in tree(summary)["series"] if one["keys"] == {"cpu": 0})
    assert one["p90_s"] and one["p99_s"] is None and one["max_s"]


@pytest.mark.parametrize("ill", [None, hog_interval, hostile_interval])
@pytest.mark.parametrize("width", [40, 80, 132, 250])
def test_every_line_fits_and_no_control_character_is_left(ill, width):
    for line in rendered(summarised(ill), width):
        assert display_width(line) <= width, line
        assert line.isprintable() or "\u202f" in line, line
        assert "\x1b" not in line


def test_hostile_names_come_out_escaped_everywhere():
    summary = summarised(hostile_interval)
    shown = "\n".join(rendered(summary, 250))
    assert r"\x1b[2J" in shown and r"\x9bname\xff" in shown or r"bad\x9bname" in shown
    dumped = json_report.dumps(json_report.as_dict(summary, judge(summary), Source.from_header(HEADER)))
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(dumped)
    assert r"\\u202egnp" in dumped


def test_colour_only_when_asked():
    assert any("\x1b[" in line for line in rendered(summarised(hog_interval), color=True))
    assert not any("\x1b[" in line for line in rendered(summarised(hog_interval)))


def test_a_narrow_terminal_has_every_number_of_a_row():
    summary = summarised(hog_interval)
    wide, narrow = rendered(summary, 250), rendered(summary, 40)
    for title in ("RUN QUEUE", "WORST WAITS", "CPU TIME", "INTERRUPT LINES"):
        told = " ".join(line.strip() for line in section(narrow, title))
        heads, *rows = (re.split(r" {2,}", line.strip()) for line in section(wide, title)[1:] if line[3:].strip())
        for row in rows:
            if len(row) == len(heads):
                assert all(cell in told for cell in row if cell != MISSING), (row, told)
    assert "CPU 1: waits" in "\n".join(narrow)


def test_many_cpus_show_the_worst_and_count_the_rest():
    lines = rendered(summarised(hog_interval, cpus=64))
    start = next(place for place, line in enumerate(lines) if line.startswith("RUN QUEUE"))
    assert lines[start + 3].split()[0] == "1"
    assert "  56 CPUs not shown" in lines


def test_what_was_not_measured_is_not_zero():
    summary = Summary()
    summary.add_interval(Node().interval(only=["netdev", "runqueue"]))
    lines = rendered(summary)
    assert any(line.startswith("COST    not measured") for line in lines)
    assert any("not measured for netdev" in line for line in lines)
    assert not any(line.startswith("SOFTIRQ ") for line in lines)


def test_refused_probes_and_filters_are_said():
    lines = rendered(summarised(), refused={"napi": "no tracepoint"}, filters={"pid": "17"}, missing=[["a", "b"]])
    assert {
        "  - napi could not start: no tracepoint",
        "  - waits and stacks of tasks outside of pid 17",
        "  - a part of a: b",
    } <= {*lines}


def test_a_rank_and_what_stands_for_it_here_are_one_filter():
    filters = {"pid": "6425", "cpus": "0-3", "job": "77", "rank": "3"}
    lines = rendered(summarised(hog_interval), filters=filters)
    whose = "rank 3 of job 77, pid 6425"
    assert section(lines, "RUN QUEUE")[0].endswith(f"  ({whose} only)")
    assert [one for one in lines if "outside of" in one] == [
        f"  - waits and stacks of tasks outside of {whose}",
        "  - anything outside of cpus 0-3",
    ]
    # It cannot be answered of a rank, and says why.
    alone = Summary(source=Source.from_header(HEADER | {"filters": {"pid": "6425", "rank": "3"}}))
    alone.add_interval(Node().interval(only=["cpustate"]))
    assert any("can't be limited to a process (pid 6425)" in one for one in judge(alone).missing)


def test_the_heading_says_what_recorded_and_the_labels():
    command = ["foreshock", "record", "-o", "a b.fsk", "\x1b[2J"]
    lines = rendered(summarised(), command=command, labels={"image": "2026-11", "rack": "r\x1b12"})
    assert lines[2:4] == [
        "recorded by: foreshock record -o 'a b.fsk' '\\x1b[2J'",
        "labels: image=2026-11 · rack=r\\x1b12",
    ]
    for wrong in ("text", 7, [7, None], {"a": "b"}, [["x"] * 9] * 9):
        assert not any("recorded by" in one for one in rendered(summarised(), command=wrong, labels=wrong))


def section(lines: Sequence[str], title: str) -> list[str]:
    """Return a section's lines, from its title to the empty line after it."""
    start = next(place for place, line in enumerate(lines) if line.startswith(title))
    return lines[start : lines.index("", start)]


def cgroup_and_polls(node: Node) -> list[Window]:
    """Waits of two pods with long names, a driver's polls, an application's and netpoll's."""
    start, now = node.now, node.now + SECOND
    paths = {(b"/kubepods.slice/kubepods-burstable.slice/pod%02d" % pod,): [3 * MS, 5000] for pod in range(2)}
    waits = histogram([("cgroup", "S192")], paths, preempted=7)
    keys = [("cpu", "u4"), ("device", "S16"), ("napi_id", "u4"), ("budget", "u4")]
    values = {(0, b"eth0", napi, budget): [90_000] for napi, budget in ((1, 64), (2, 64), (3, 8), (0, 0))}
    polls = histogram(keys, values, polls=1000, work=9400, full=4)
    others = [one for one in node.interval() if one.probe != "napi"]
    new = [Window("runqueue_cgroup", "wait", start, now, waits), Window("napi", "poll", start, now, polls)]
    return [*others, *new]


def test_every_series_has_all_its_percentiles_from_100_columns_on():
    summary = Summary(SECOND)
    summary.add_interval(cgroup_and_polls(Node()))
    titles = ("RUN QUEUE  ", "RUN QUEUE BY", "SOFTIRQ DELAY", "SOFTIRQ RUN", "INTERRUPT LINES", "NETWORK POLLING")
    for title in titles:
        head = " ".join(section(rendered(summary, 100), title)[:3])
        assert "p50 p90 p99 p99.9 max" in " ".join(head.split()), title


def test_at_80_columns_columns_are_left_out_rather_than_cut():
    summary = Summary(SECOND)
    summary.add_interval(cgroup_and_polls(Node()))
    for title in ("INTERRUPT LINES", "NETWORK POLLING", "SOFTIRQ RUN"):
        assert not any("…" in line for line in section(rendered(summary, 80), title))
    pods = [row.split()[0] for row in section(rendered(summary, 80), "RUN QUEUE BY")[2:]]
    assert pods[0] != pods[1] and all(pod.startswith("…") for pod in pods)
    head = " ".join(section(rendered(summary, 80), "INTERRUPT LINES")[1].split())
    assert "p50 p99" in head and "p90" not in head.split() and head.endswith("max none")


def test_polls_of_drivers_applications_and_netpoll_stay_apart():
    summary = Summary(SECOND)
    summary.add_interval(cgroup_and_polls(Node()))
    rows = section(rendered(summary, 100), "NETWORK POLLING")[3:]
    assert [re.split(r" {2,}", row.strip())[:3] for row in rows] == [
        ["eth0", "0", "2 k/s"],
        ["eth0 busy-poll", "0", "1 k/s"],
        ["eth0 netpoll", "0", "1 k/s"],
    ]


def worst_wait(source: Source, **how: object) -> str:
    row = {"cpu": 1, "waited_cpu": 1, "pid": 7, "comm": b"victim", "holder_pid": 60, "holder_comm": b"other", **how}
    summary = Summary(SECOND, source)
    summary.add_interval(Node().interval(waits={1: [90 * MS]}, worst=[row]))
    lines = text.render(summary, judge(summary), source, width=100)
    return section(lines, "WORST WAITS")[2]


def test_a_worst_wait_says_what_had_the_cpu_for_most_of_it():
    source = Source.from_header(HEADER)
    assert worst_wait(source, **filled(90 * MS, 0.01, idle=0.99)).endswith("99 %  nobody: CPU idle")
    assert worst_wait(source, **filled(90 * MS, 0.2, soft=0.7)).endswith("70 %  softirqs")
    assert worst_wait(source, **filled(90 * MS, 0.9)).endswith("90 %  other[60]")
    assert worst_wait(source, **filled(90 * MS, 0.9), holder_comm=b"foreshock").endswith(
        "90 %  foreshock itself (pid 60)"
    )


def test_a_worst_wait_names_who_had_what_is_known_of_it_as_such():
    source = Source.from_header(HEADER)
    little = filled(90 * MS, 0) | {"covered_ns": 2 * MS, "holder_ns": 1 * MS}
    assert worst_wait(source, **little).endswith("–  only 2.2 % seen: other[60]")
    assert worst_wait(source, **little | {"covered_ns": 0, "holder_ns": 0}).endswith("–  only 0 % seen")


def test_caveats_are_one_paragraph_after_the_findings():
    summary = Summary(SECOND)
    node = Node()
    for _ in range(3):
        summary.add_interval(node.interval(losses={"collided": 900}))
    node.now += 5 * SECOND
    summary.add_interval(node.interval())
    lines = rendered(summary)
    assert sum(line.startswith(" - ") for line in lines) == 1
    paragraph = " ".join(line.strip() for line in lines[3 : lines.index("Within normal:")])
    assert "Caveat: Events are missing" in paragraph and "1 gap between intervals" in paragraph


def test_rule_names_are_for_programs():
    shown = "\n".join(rendered(summarised(hog_interval), 110))
    found = tree(summarised(hog_interval))["verdict"]["findings"]
    assert {one["rule"] for one in found} == {"runqueue.wait", "softirq.delay"}
    assert not any(one["rule"] in shown for one in found)


def test_series_say_what_they_are_limited_to():
    source = Source.from_header(HEADER | {"filters": {"pid": "17"}})
    lines = text.render(summarised(hog_interval), judge(summarised()), source)
    assert section(lines, "RUN QUEUE")[0].endswith("(pid 17 only)")
    assert section(lines, "CPU TIME")[0] == "CPU TIME  of all tasks: it can't be limited"
    found = json_report.as_dict(summarised(), judge(summarised()), source)["series"]
    assert {one["series"] for one in found if one["filters"] == {"pid": "17"}} == {"runqueue.wait"}
    assert [one["filters"] for one in found if one["series"] == "softirq.run"][0] == {}


def test_nothing_recorded_is_one_line():
    assert rendered(Summary())[1:] == ["", "VERDICT  Nothing was recorded: there is no interval to judge."]


def test_one_interval_is_singular_and_as_long_as_it_was():
    summary = Summary(SECOND)
    summary.add_interval(Node(seconds=0.3).interval())
    assert rendered(summary, 100)[1].endswith("1 interval of 300 ms")


def test_json_has_base_units_and_stable_keys():
    found = tree(summarised(hog_interval))
    assert found["schema"] == "foreshock.summary/1"
    assert set(found) == {
        *("schema", "source", "time", "verdict", "series", "cpus", "devices", "rdma_ports", "events", "losses"),
        *("losses_not_measured", "cost", "stacks", "jobs", "ledger"),
    }
    waits = {entry["keys"].get("cpu"): entry for entry in found["series"] if entry["series"] == "runqueue.wait"}
    assert waits[1]["max_s"] == 1.0 and waits[None]["count"] == sum(waits[cpu]["count"] for cpu in range(8))
    worst = found["events"]["runqueue.worst"]["worst"][0]
    assert (worst["wait_s"], worst["holder_comm"]) == (0.949, "hog")
    assert worst["unix_s"] == pytest.approx((HEADER["clock_offset_ns"] + 1002 * SECOND + 5 * MS) / 1e9)
    assert found["verdict"]["findings"][0]["values"]["holder_pid"] == 1234
    assert found["losses"]["runqueue"] == {"unmatched": 0, "collided": 0}


def test_json_says_null_for_what_is_unknown():
    summary = Summary()
    summary.add_interval(Node().interval(only=["netdev"]))
    found = json.loads(json_report.dumps(json_report.as_dict(summary, judge(summary), Source())))
    assert found["time"]["start_unix_s"] is None
    assert found["cost"] is None
    assert json.loads(json_report.dumps({"a": float("inf"), "b": [float("nan")]})) == {"a": None, "b": [None]}


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"host": 5, "kernel": ["x"], "cpus": "many", "interval_ns": -1, "clock_offset_ns": "now", "filters": 3},
        {"fingerprint": "none", "refused": [[1], "ab", ["p", "why"]], "interval_ns": float("inf"), "cpus": True},
    ],
)
def test_a_header_may_hold_anything(header):
    source = Source.from_header(header)
    assert rendered(summarised())  # and with the usual one
    assert text.render(summarised(), judge(summarised()), source)


def test_a_header_with_the_fingerprint_inside():
    clocks = {"monotonic_ns": 5, "realtime_ns": 25}
    source = Source.from_header({"fingerprint": {"host": "n", "kernel": {"release": "6.1"}, "clocks": clocks}})
    assert (source.host, source.kernel, source.clock_offset_ns) == ("n", "6.1", 20)


def test_times_are_told_by_the_clock_as_it_was_set_then():
    def window(second: int, rows: list[int], kind: str = "i8") -> Window:
        start = second * SECOND
        return Window("agent", "clock", start, start + SECOND, np.array(rows, dtype=[("offset_ns", kind)]))

    summary = Summary(SECOND, Source.from_header({"clock_offset_ns": 100 * SECOND}))
    for one in (window(30, []), window(50, [300 * SECOND]), window(40, [200 * SECOND]), window(40, [200 * SECOND])):
        summary.add(one)
    seen = [summary.source.unix_ns(second * SECOND) / SECOND for second in (30, 39, 40, 49, 50, 60)]
    assert seen == [130, 139, 240, 249, 350, 360]
    summary.add(window(70, [1], "f4"))  # what is none
    assert summary.source.unix_ns(70 * SECOND) == 370 * SECOND


class TestLayout:
    def test_wrapping_keeps_numbers_and_units_together(self):
        lines = wrap("it took ≤ 949 ms of 12 s and 93 % of it", 14)
        assert lines == ["it took", "≤ 949 ms of", "12 s and 93 %", "of it"]

    def test_a_word_longer_than_the_line_is_cut_apart(self):
        assert wrap("a " + "x" * 25, 10, "> ", "  ") == ["> a", "  xxxxxxxx", "  xxxxxxxx", "  xxxxxxxx", "  x"]

    def test_flexible_columns_give_way_the_widest_first(self):
        columns = [Column("a", False, True, 4), Column("b", False, True, 4), Column("n")]
        lines = table(columns, [["x" * 30, "y" * 10, "123"]], 30, Style())
        assert lines[1] == "  " + "x" * 10 + "…  " + "y" * 10 + "  123"

    def test_terminals_that_know_ascii_only(self):
        assert plain_ascii("≤ 1\u202f234 µs – 训") == r"<= 1,234 us - \u8bad"
        assert plain_ascii("×3 ÷28 −33 % ≥ 1 s ± 2") == "x3 /28 -33 % >= 1 s +- 2"
