"""Lines of the kernel's log: a real line for every pattern, and lines that must not match."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tracer.alerts.alert import Severity
from tracer.alerts.logpatterns import LINES, conditions, found
from tracer.alerts.logtable import patterns
from tracer.alerts.rule import View
from tracer.blackbox.redact import Redactor
from tracer.window import Window

SECOND = 1_000_000_000
RULES = sorted({pattern.rule for pattern in patterns()})
ROW = np.dtype([("time_ns", "u8"), ("serial", "u8"), ("level", "u1"), ("count", "u4"), ("text", "S240")])


def _read() -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the samples, each with what it has to become, and the near misses."""
    samples, near_misses, wanted = [], [], ("",)
    for line in (Path(__file__).parent / "log_samples.txt").read_text().splitlines():
        if line.startswith("    "):
            near_misses.append(line[4:]) if wanted == ("none",) else samples.append((*wanted, line[4:]))
        elif line and not line.startswith("#"):
            wanted = tuple(part.strip() for part in line.split("|"))
    return samples, near_misses


SAMPLES, NEAR_MISSES = _read()


def log(*lines: str | tuple[str, int]) -> View:
    """Return a view of these lines, one a second; a pair is a line and how often it came."""
    rows = np.zeros(len(lines), ROW)
    for place, (row, line) in enumerate(zip(rows, lines, strict=True)):
        text, row["count"] = (line, 1) if isinstance(line, str) else line
        row["text"], row["serial"], row["time_ns"] = text.encode(), place, (place + 1) * SECOND
    end_ns = (len(lines) + 1) * SECOND
    return View(end_ns, {LINES: Window(*LINES, 0, end_ns, rows)})


@pytest.mark.parametrize(("rule", "kind", "name", "severity", "words", "line"), SAMPLES)
def test_a_line_is_told_by_its_rule_alone(rule, kind, name, severity, words, line):
    view = log(line)
    assert [each for each in RULES if found(view, each)] == [rule]
    (condition,) = conditions(found(view, rule))
    assert (condition.subject.kind, condition.subject.name) == (kind, name)
    assert condition.severity is Severity[severity]
    assert words in condition.summary
    assert condition.since_ns == SECOND
    assert "{" not in condition.summary and "; ;" not in condition.summary


def test_every_pattern_has_a_sample():
    unused = [each.regex for each in patterns() if not any(re.match(each.regex, sample[-1]) for sample in SAMPLES)]
    assert unused == []


@pytest.mark.parametrize("line", NEAR_MISSES)
def test_near_misses(line):
    assert [rule for rule in RULES if found(log(line), rule)] == []


def test_no_line_matches_further_in():
    """What comes behind other words is a name or a quotation."""
    assert [sample for sample in SAMPLES if found(log(f"audit: a long name of it={sample[-1]}"), sample[0])] == []


def test_lines_of_one_subject_are_one_condition():
    lines = [
        "ice 0000:b1:00.0 eth0: NETDEV WATCHDOG: CPU: 38: transmit queue 14 timed out 5120 ms",
        "ice 0000:b1:00.0 eth0: tx_timeout: VSI_num: 6, Q 14, NTC: 0x0, HW_HEAD: 0x0, NTU: 0x0, INT: 0x4000001",
        "ice 0000:b1:00.0 eth0: tx_timeout recovery level 1, txqueue 14",
        "igb 0000:01:00.0 eth1: Reset adapter",
    ]
    first, second = conditions(found(log(*lines), "tx-timeout"))
    assert (first.subject.name, second.subject.name) == ("eth0", "eth1")
    assert first.summary.startswith("eth0: transmit queue 14 has timed out (driver ice) (also: ")
    assert "and 1 more" in first.summary
    assert first.numbers == {"lines": 3}


def test_the_worst_line_speaks_and_the_first_says_since_when():
    lines = ["nvme nvme0: I/O 192 QID 5 timeout, aborting", "nvme nvme0: Removing after probe failure status: -19"]
    (condition,) = conditions(found(log(*lines), "storage-error"))
    assert condition.severity is Severity.PAGE and condition.since_ns == SECOND
    assert condition.summary.startswith("nvme0: the controller was given up (also: nvme0: a request of queue 5")


def test_repetitions_count():
    (condition,) = conditions(found(log(("I/O error, dev vda, sector 512", 40)), "storage-error"))
    assert condition.numbers == {"lines": 40}


def test_bytes_that_are_no_utf8_survive():
    line = b"nfs: server \xff\xfe\x1b[2J not responding, still trying"
    view = log("")
    view.windows[LINES].rows["text"] = line
    (condition,) = conditions(found(view, "storage-error"))
    assert condition.subject.name.encode("utf-8", "surrogateescape") == b"\xff\xfe\x1b[2J"


def test_a_view_without_the_log_has_no_lines():
    assert found(View(0, {}), "gpu-error") == []


@pytest.mark.parametrize("line", [*(sample[-1] for sample in SAMPLES), *NEAR_MISSES])
def test_a_line_without_names_is_told_by_the_same_rules(line):
    hidden = Redactor(b"0123456789abcdef").text(line)
    assert [each for each in RULES if found(log(hidden), each)] == [each for each in RULES if found(log(line), each)]
