"""Whatever a recording holds: a report, or a sentence about what is wrong with it. Never a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.lib import recfunctions
from unit.synthetic import HEADER, SECOND, WORST_SOFTIRQ, Node, hog_interval
from unit.test_stacks import deep
from unit.test_summary import wait_window

import tracer
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import judge
from tracer.commands import main
from tracer.recording import RecordingReader, RecordingWriter
from tracer.reports import json, text
from tracer.reports.state import TopState
from tracer.reports.top import render
from tracer.window import Window

RANDOM = np.random.default_rng(7)


@cache
def intervals() -> list[list[Window]]:
    """An interval of the sample, and synthetic ones with what it lacks: worst events, stacks, stalls."""
    node = Node(cpus=2)
    stall = {"since_ns": 7, "duration_ns": 9 * SECOND, "cpu": 0, "evidence": 2, "comm": b"x"}
    still = [{"cpu": 1, "kind": b"heartbeat", "age_ns": 9 * SECOND, "pid": 5, "comm": b"spin"}]
    made = [
        [*hog_interval(node), *deep("oncpu", (0, 60, 60, b"hog", 71, 48))],
        node.interval(stalls=[stall], still=still),
    ]
    with RecordingReader(Path(tracer.__file__).parent / "sample" / "demo.fsk") as reader:
        return [next(iter(reader)), *made]


def changed(
    table: tuple[str, str], column: str, how: Callable[[np.ndarray, str], np.ndarray]
) -> Iterator[list[Window]]:
    for windows in intervals():
        yield [
            Window(one.probe, one.table, one.start_ns, one.end_ns, how(one.rows, column), one.losses)
            if (one.probe, one.table) == table and column in one.rows.dtype.names
            else one
            for one in windows
        ]


def dropped(rows: np.ndarray, column: str) -> np.ndarray:
    return rows[[name for name in rows.dtype.names if name != column]]


def retyped(kind: str, shape: tuple[int, ...] = ()) -> Callable[[np.ndarray, str], np.ndarray]:
    def change(rows: np.ndarray, column: str) -> np.ndarray:
        fields = [
            (name, kind, shape) if name == column else (name, rows.dtype[name].base, rows.dtype[name].shape)
            for name in rows.dtype.names
        ]
        new = np.zeros(len(rows), fields)
        for name in rows.dtype.names:
            if name != column:
                new[name] = rows[name]
        data = RANDOM.bytes(new[column].nbytes)
        new[column] = np.frombuffer(data, new.dtype[column].base).reshape(new[column].shape)
        return new

    return change


def nested(rows: np.ndarray, column: str) -> np.ndarray:
    return retyped([("a", "u4"), ("b", "S3")])(rows, column)  # type: ignore[arg-type]


CHANGES = {
    "dropped": dropped,
    "name": retyped("S8"),
    "float": retyped("f8"),
    "signed": retyped("i8"),
    "unsigned": retyped("u8"),
    "bool": retyped("?"),
    "pair": retyped("u4", (2,)),
    "matrix": retyped("u4", (2, 3)),
    "few slots": retyped("u4", (3,)),
    "signed slots": retyped("i4", (298,)),
    "float slots": retyped("f4", (298,)),
    "nested": nested,
}
TABLES = sorted({(one.probe, one.table) for windows in intervals() for one in windows})


def columns(table: tuple[str, str]) -> list[str]:
    found = [one for windows in intervals() for one in windows if (one.probe, one.table) == table]
    return sorted({column for one in found for column in one.rows.dtype.names})


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("table", TABLES, ids=".".join)
def test_any_column_may_be_anything(table, how):
    source = Source.from_header(HEADER)
    # Most of the many counters of a device are read alike.
    for column in columns(table)[:12]:
        state = TopState(source)
        state.show(list(changed(table, column, CHANGES[how])))
        text.render(state.recent, state.verdict, source)
        json.dumps(state.as_dict())
        render(state)


def test_a_later_versions_columns_do_no_harm():
    summary, window = Summary(SECOND), wait_window({0: [1000]})
    rows = recfunctions.append_fields(window.rows, "new", np.zeros(1), usemask=False)
    summary.add(Window("runqueue", "wait", 0, SECOND, rows))
    assert summary.counted("runqueue") == 1 and not summary.refused


def test_a_table_that_is_none_is_told_and_its_losses_kept():
    summary = Summary(SECOND)
    summary.add(Window("runqueue", "wait", 0, SECOND, np.zeros(1, [("cpu", "u4")]), {"collided": 3}))
    finding = next(one for one in judge(summary).findings if one.rule == "quality.refused")
    assert "runqueue.wait: column sum is missing" in finding.what
    assert summary.damaged and summary.losses.total("runqueue") == 3


def test_an_unknown_tables_odd_slots_are_told_but_no_damage():
    summary = Summary(SECOND)
    summary.add(Window("later", "series", 0, SECOND, np.zeros(1, [("slots", "u4", (7,))])))
    assert summary.refused and not summary.damaged


def test_a_recording_of_odd_tables_does_not_hide_the_others(tmp_path):
    node, odd, good = Node(cpus=2), tmp_path / "odd.fsk", tmp_path / "good.fsk"
    with RecordingWriter(good, HEADER) as writer:
        writer.write(node.interval())
    with RecordingWriter(odd, HEADER) as writer:
        rows = np.ones(1, [*((name, "f4") for name in WORST_SOFTIRQ.names)])
        writer.write([Window("softirq", "worst", 0, SECOND, rows)])
    result = CliRunner().invoke(main, ["summary", str(odd), str(good)])
    assert result.exit_code == 4
    assert "softirq.worst: column" in result.stdout and result.stdout.count("VERDICT") == 2
    assert CliRunner().invoke(main, ["top", "--once", str(odd)]).exit_code == 0
