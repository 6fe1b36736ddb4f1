"""Stacks of a recording: by weight, with names from its dictionary, safe and short enough to print."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.lib.recfunctions import append_fields
from unit.synthetic import HEADER, SECOND, START, Node

from tracer import brackets
from tracer.analysis import stacks
from tracer.analysis.frames import Frame
from tracer.analysis.source import Source
from tracer.analysis.stacks import Stacks
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.reports import json as json_report
from tracer.reports import text
from tracer.reports.html.quality import stack_quality
from tracer.reports.sections.stacks import folded
from tracer.units import display_width
from tracer.window import Window

SAMPLE = np.dtype([("cpu", "u4"), ("pid", "u4"), ("tid", "u4"), ("comm", "S16"), ("stack", "u8"), ("weight", "u8")])
STACK = np.dtype([("stack", "u8"), ("depth", "u2"), ("frame", "u8")])
FRAME = np.dtype([("frame", "u8"), ("kind", "S1"), ("module", "S64"), ("symbol", "S192")])

FRAMES = np.array(
    [
        (1, b"u", b"hog", b"main"),
        (2, b"u", b"hog", b"spin"),
        (3, b"k", b"", b"__schedule"),
        (4, b"k", b"", b"do_wait\x1b[2J"),
    ],
    FRAME,
)
# Innermost first: main calls spin; main waits in the kernel.
STACKS = np.array([(71, 0, 2), (71, 1, 1), (72, 0, 3), (72, 1, 4), (72, 2, 1)], STACK)


def deep(probe: str, *samples: tuple[object, ...]) -> list[Window]:
    tables = {"samples": np.array([*samples], SAMPLE), "stacks": STACKS, "frames": FRAMES}
    return [Window(probe, name, START, START + SECOND, rows) for name, rows in tables.items()]


@pytest.fixture
def summary() -> Summary:
    summary = Summary(SECOND)
    on = deep("oncpu", (0, 60, 60, b"hog", 71, 48), (1, 60, 60, b"hog", 71, 1), (0, 9, 9, b"rare", 0, 1))
    off = deep("offcpu", (0, 60, 61, b"w\x1b", 72, 3 * SECOND), (0, 60, 60, b"hog", 72, SECOND))
    summary.add_interval([*Node().interval(), *on, *off])
    return summary


def rendered(summary: Summary, width: int = 80) -> list[str]:
    return text.render(summary, judge(summary), Source.from_header(HEADER), width=width)


def test_the_heaviest_stacks_are_shown_with_weight_share_task_and_frames(summary):
    lines = rendered(summary)
    start = next(place for place, line in enumerate(lines) if line.startswith("ON-CPU STACKS"))
    assert [line.split() for line in lines[start + 1 : start + 6]] == [
        ["samples", "share", "task"],
        ["49", "98", "%", "hog[60]"],
        ["main;spin"],
        ["1", "2", "%", "rare[9]"],
        ["no", "stack"],
    ]


def test_off_cpu_stacks_are_times_mark_kernel_frames_and_leave_the_scheduler_out(summary):
    lines = rendered(summary)
    start = next(place for place, line in enumerate(lines) if line.startswith("OFF-CPU STACKS"))
    assert lines[start + 2].split() == ["3", "s", "75", "%", r'"w\x1b"[61]']
    assert lines[start + 3].strip() == r"main;do_wait\x1b[2J_[k]"


def test_json_has_the_stacks_whole(summary):
    source = Source.from_header(HEADER)
    found = json.loads(json_report.dumps(json_report.as_dict(summary, judge(summary), source)))["stacks"]
    assert found["oncpu"]["weight"] == 50
    first = found["offcpu"]["heaviest"][0]
    assert (first["weight"], first["share"], first["tid"]) == (3 * SECOND, 0.75, 61)
    assert first["folded"] == r"main;do_wait\x1b[2J_[k];__schedule_[k]"
    assert [frame["kind"] for frame in first["frames"]] == ["user", "kernel", "kernel"]


def test_a_stack_told_before_its_sample_is_known():
    summary = Summary(SECOND)
    first, *dictionary = deep("oncpu", (0, 60, 60, b"hog", 71, 2))
    summary.add_interval(dictionary)
    later = Window("oncpu", "samples", START + SECOND, START + 2 * SECOND, first.rows)
    summary.add_interval([later])
    assert [frame.symbol for frame in summary.stacks["oncpu"].heaviest(1)[0].frames] == ["main", "spin"]


def losing(probe: str, weights: tuple[int, int], losses: dict[str, int]) -> Summary:
    """Return a second with the weight of a whole stack, and of one of which the kernel's half was lost."""
    samples = np.array([(0, 60, 60, b"hog", 71, weights[0]), (0, 60, 60, b"hog", 73, weights[1])], SAMPLE)
    if probe == "offcpu":
        samples = append_fields(samples, "count", [300, 100], "u8", usemask=False)
    lost = np.array([(9, b"k", b"", brackets.LOST.encode())], FRAME)
    tables = {
        "samples": samples,
        "stacks": np.append(STACKS, np.array([(73, 0, 9), (73, 1, 1)], STACK)),
        "frames": np.append(FRAMES, lost),
    }
    summary = Summary(SECOND)
    made = [Window(probe, name, START, START + SECOND, rows) for name, rows in tables.items()]
    made[0] = replace(made[0], losses=losses)
    summary.add_interval([*Node().interval(), *made])
    return summary


@pytest.mark.parametrize(
    ("probe", "weights", "losses", "told"),
    [
        (
            *("oncpu", (960, 40), {"collided": 40}),
            "4 % of the samples have no stack or only a part of one: the table of stacks was full",
        ),
        (
            *("offcpu", (3 * SECOND, SECOND), {"collided": 20}),
            "25 % of the off-CPU time has no stack or only a part of one: the table of stacks was full",
        ),
        (
            *("oncpu", (960, 0), {"full": 240}),
            "240 samples, 20 % of them, are not counted: the table for them was full",
        ),
        (
            *("offcpu", (SECOND, 0), {"full": 100}),
            "100 blocks, 20 % of them, are not counted: the table for them was full",
        ),
    ],
)
def test_how_much_has_no_stack_is_said_beside_the_stacks_and_is_a_caveat(probe, weights, losses, told):
    summary = losing(probe, weights, losses)
    (caveat,) = judge(summary).caveats
    assert plain(caveat.what) == f"Stacks are missing: {told} (normal: < 0.1 %)." and caveat.rule == "quality.stacks"
    whole = plain(" ".join(rendered(summary)))
    _, _, section = whole.partition("ON-CPU STACKS" if probe == "oncpu" else "OFF-CPU STACKS")
    assert f"Caveat: {plain(caveat.what)}" in whole and f"{told}." in section
    rest = {"total": 1, "pruned": 0, "unnamed": 0}
    flame = {"probe": probe, "title": "Stacks", "without_idle": rest, "total": 1, "untold": 0, "unnamed": ()}
    chip = stack_quality(flame, summary)
    assert chip["state"] == "bad" and told in plain(chip["text"])


@pytest.mark.parametrize("losses", [{"collided": 19}, {"full": 19}, {"collided": 0, "full": 0}])
def test_single_stacks_that_were_lost_are_no_caveat(losses):
    summary = losing("oncpu", (960, 40), losses)
    assert judge(summary).caveats == () and "was full" not in " ".join(rendered(summary))


def test_blocks_that_were_not_counted_are_told_of_recordings_that_do_not_say_how_many_there_were():
    summary = Summary(SECOND)
    (samples, *_) = deep("offcpu", (0, 60, 60, b"hog", 72, SECOND))
    summary.add_interval([*Node().interval(), replace(samples, losses={"full": 50})])
    assert "50 blocks are not counted" in plain(judge(summary).caveats[0].what)


def plain(text: str) -> str:
    return " ".join(text.split())


def test_memory_is_bounded_and_what_finds_no_room_is_counted(monkeypatch):
    monkeypatch.setattr(stacks, "MAX_STACKS", 10)
    monkeypatch.setattr(stacks, "MAX_FRAMES", 10)
    found = Stacks()
    rows, frames = np.zeros(30, STACK), np.zeros(30, FRAME)
    rows["stack"] = frames["frame"] = np.arange(30) + 1
    found.learn(rows)
    found.learn(frames)
    found.learn(frames)
    assert found.unkept == 20 + 20 + 20


def test_a_stack_is_shortened_in_the_middle():
    frames = [Frame(False, "", name) for name in ("main", "run", "step", "work")] + [Frame(True, "", "read;x")]
    assert folded(frames) == "main;run;step;work;read:x_[k]"
    assert folded(frames, 24) == "main;…;work;read:x_[k]"
    for width in range(1, 40):
        assert display_width(folded(frames, width)) <= width
