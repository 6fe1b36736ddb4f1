"""What a recording was made for is the first thing that its report says, with its time and its threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from unit.agent_samples import an_alert
from unit.deep_samples import DEEP_HEADER, deep_windows
from unit.report_data import Data
from unit.synthetic import SECOND, START, Node, hog_interval

from tracer.alerts.alert import Alert, Severity
from tracer.alerts.record import OCCASION, alert_record, occasion
from tracer.commands import main
from tracer.recording import RecordingWriter
from tracer.reports.html.payload import Payload

PLENTY = 8 << 20


def _page() -> Alert:
    alert = an_alert(severity=Severity.PAGE, stack=("spin_work",), rule="soft-lockup", title="CPU makes no progress")
    return replace(alert, began_ns=START + 2 * SECOND, at_ns=START + 4 * SECOND)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds, the last three of them with stacks; the alert began two seconds after the start."""
    path, node = tmp_path_factory.mktemp("occasion") / "page.fsk", Node(cpus=2)
    with RecordingWriter(path, {**DEEP_HEADER, OCCASION: alert_record(_page())}) as writer:
        for second in range(6):
            windows = hog_interval(node) if second == 3 else node.interval()
            writer.write([*windows, *(deep_windows(second) if second >= 3 else ())])
    return path


def _tree(path: Path) -> dict:
    from tracer.recording import RecordingReader

    with RecordingReader(path) as reader:
        payload = Payload(reader.header)
        for windows in reader:
            payload.add_interval(windows)
    return Data(payload.text(PLENTY)).tree


def test_the_alert_is_the_first_finding_and_leads_to_its_seconds(recording: Path):
    tree = _tree(recording)
    assert tree["headline"].startswith("Recorded because of a page: CPU makes no progress. Besides, ")
    assert tree["severity"] == "critical"
    first, *others = tree["findings"]
    assert first["what"].startswith("alert soft-lockup: CPU 3 is stuck; began 2023-11-14 22:13:24 UTC, told 2 s later.")
    assert "Threshold: warning from 1 s; page from 5 s" in first["what"] and "`" not in first["what"]
    assert (first["who"], first["next"]) == ("by spin[7], softirq TIMER in spin_work", "look at it")
    assert first["time_ns"] == START + 2 * SECOND and first["until_ns"] == START + 6 * SECOND
    assert others and all(one["until_ns"] is None for one in others)
    assert [one["alert"]["rule"] for one in tree["marks"] if one["kind"] == "alert"] == ["soft-lockup"]


def test_stacks_are_told_to_begin_when_they_did(recording: Path):
    flames = {one["name"]: one["recorded_ns"] for one in _tree(recording)["flames"]}
    assert flames["oncpu"] == flames["offcpu"] == [START + 3 * SECOND, START + 6 * SECOND]
    assert flames["waits"] is None


def test_the_text_says_it_first_and_the_file_without_names_says_it_too(recording: Path):
    plain = CliRunner().invoke(main, ["report", str(recording), "--text"]).stdout
    verdict = plain.index("VERDICT  Recorded because of a page")
    assert verdict < plain.index("!! alert soft-lockup: CPU 3 is stuck") < plain.index("by spin[7]")
    hidden = CliRunner().invoke(main, ["report", str(recording), "--text", "--redact"]).stdout
    assert "!! alert soft-lockup: CPU 3 is stuck" in hidden and "spin[7]" not in hidden and "spin_work" in hidden


def test_a_header_that_holds_no_alert_is_one_of_a_recording_like_any_other():
    for header in ({}, {OCCASION: None}, {OCCASION: {"rule": 5}}, {OCCASION: [{}] * 9}):
        assert occasion(header) is None
