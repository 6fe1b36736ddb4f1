"""Whatever a recording holds, a report and every export come of it, or one line that says why not."""

from __future__ import annotations

import json

import msgpack
import pytest
from click.testing import CliRunner
from unit.deep_samples import deep_windows, write_deep
from unit.recording_samples import write_anew
from unit.synthetic import HEADER
from unit.test_gate import CHANGES, TABLES, changed, columns

from tracer.blackbox.redact import Redactor
from tracer.commands import main
from tracer.commands._alerts import ReplayedAlerts
from tracer.recording import RecordingWriter
from tracer.reports.export.folded import folded
from tracer.reports.export.pprof import pprof
from tracer.reports.export.selection import Selection
from tracer.reports.export.speedscope import speedscope
from tracer.reports.export.stacks import StackWeights
from tracer.reports.export.tables import CsvTables, json_document
from tracer.reports.html.payload import Payload
from tracer.reports.story import signs_of


# All of them are test_gate's: of what is read here besides, these.
@pytest.mark.parametrize("how", ["dropped", "name", "matrix", "nested", "signed"])
@pytest.mark.parametrize("table", TABLES, ids=".".join)
def test_any_column_may_be_anything(table, how):
    for column in columns(table)[:3]:
        hostile = [*changed(table, column, CHANGES[how])]
        payload = Payload(HEADER)
        alerts, weights = ReplayedAlerts(payload.source), StackWeights(payload.source, Selection(pid=60, cpus=(0,)))
        tables, redactor = CsvTables(payload.source, Selection(pid=60, cpus=(0, 1))), Redactor(b"key")
        for windows in hostile:
            redactor.learn_windows(windows)
            assert [len(redactor.window(one).rows) for one in windows] == [len(one.rows) for one in windows]
            payload.add_interval(windows)
            alerts.add_interval(windows)
            weights.add_interval(windows)
            assert all(text.isascii() or text.decode() for _, text in tables.lines(windows))
        assert payload.text(1 << 30, signs=signs_of(alerts.alerts)[0])
        json.loads(b"".join(json_document(HEADER, hostile, Selection(pid=60), set())))
        if weights.present():
            for pieces in (folded(weights), speedscope(weights, "x"), pprof(weights, payload.source, "x")):
                assert b"".join(pieces)


@pytest.mark.parametrize("probes", [7, "x", [7], [{"name": 7, "tables": 7}], [{"name": "x", "tables": [{"name": []}]}]])
def test_a_header_may_be_anything(tmp_path, probes):
    nested: object = "end"
    for _ in range(300):
        nested = {"deeper": [nested, {"a": 1}]}
    msgpack.packb(nested)  # as deep as a recording can hold it
    path = tmp_path / "odd.fsk"
    header = {"probes": probes, "host": 7, "fingerprint": nested, "filters": [1], "interval_ns": -3, "cpus": "many"}
    with RecordingWriter(path, header) as writer:
        writer.write(deep_windows(0))
    for command in (
        ["report", str(path), "-o", str(tmp_path / "out.html")],
        ["report", str(path), "--text", "--redact", "--baseline", str(path)],
        *(
            ["export", str(path), "--format", form, "-o", str(tmp_path / form)]
            for form in ("json", "csv", "folded", "pprof")
        ),
        ["export", str(path), "--format", "json", "--series", "x"],
    ):
        result = CliRunner().invoke(main, command)
        assert result.exit_code in (0, 2, 4), (command, result.output)


def test_bytes_changed_anywhere_are_a_line_and_an_exit_code(tmp_path):
    data = write_deep(tmp_path / "good.fsk").read_bytes()
    for place in range(12, len(data), len(data) // 40):
        path = tmp_path / "odd.fsk"
        write_anew(path, data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        for command in (["report", str(path), "-o", "-"], ["export", str(path), "--format", "folded"]):
            result = CliRunner().invoke(main, command)
            assert result.exit_code in (0, 2, 4), (place, result.output)
