"""Times on the page: whoever takes one to another command, or to a colleague, names the same moment there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from playwright.sync_api import Page
from unit.deep_samples import DEEP_HEADER, deep_windows
from unit.synthetic import SECOND, START, Node
from web.pages import rows, text

from tracer.analysis.intervals import span
from tracer.analysis.source import Source
from tracer.commands._range import RANGE
from tracer.reports.export.selection import Selection
from tracer.reports.export.tables import CsvTables
from tracer.reports.html.page import page as html_page
from tracer.reports.html.payload import Payload
from tracer.window import Window

#: The recording begins three quarters of a second after a whole one.
HEADER = {**DEEP_HEADER, "clock_offset_ns": 86_400 * SECOND - START + 750_000_000}


def of(intervals: list[list[Window]], folder: Path, interval_ns: int = SECOND) -> tuple[Path, Payload]:
    """Write a report of these intervals."""
    payload = Payload({**HEADER, "interval_ns": interval_ns})
    for windows in intervals:
        payload.add_interval(windows)
    path = folder / "report.html"
    path.write_text(html_page(payload.text(8 << 20, title="x.fsk"), "report"))
    return path, payload


def seconds(number: int) -> list[list[Window]]:
    node = Node(cpus=2)
    return [[*node.interval(), *deep_windows(second)] for second in range(number)]


def shown(page: Page) -> str:
    found = re.match(r"Selected: (\S+) to (\S+) UTC", text(page, "range"))
    assert found, text(page, "range")
    return "..".join(found.groups())


def test_a_range_as_the_page_says_it_is_the_same_for_an_export(opened, tmp_path):
    intervals = seconds(9)
    path, payload = of(intervals, tmp_path)
    said = RANGE.convert(shown(opened(path, "#range=4-7")), None, None)
    start_ns, end_ns = said.monotonic_ns(payload.source, span(intervals[0]))
    selection = Selection(start_ns=start_ns, end_ns=end_ns)
    assert [place for place, windows in enumerate(intervals) if selection.has(windows)] == [4, 5, 6]


def test_short_steps_have_times_that_differ(opened, tmp_path):
    length = SECOND // 100
    intervals = [
        [replace(window, start_ns=START + place * length, end_ns=START + (place + 1) * length) for window in windows]
        for place, windows in enumerate(seconds(9))
    ]
    page = opened(of(intervals, tmp_path, length)[0], "#range=4-7")
    assert shown(page) == "00:00:00.790..00:00:00.820"
    page.locator("#heat-table summary").click()
    page.wait_for_selector("#heat-table tbody tr")
    assert [row[0] for row in rows(page, "heat-table")] == ["00:00:00.790", "00:00:00.800", "00:00:00.810"]


def test_one_interval_is_one_and_all_of_it_is_no_function(opened, tmp_path):
    page = opened(of(seconds(1), tmp_path)[0], "#cpu=")
    assert text(page, "when").endswith("· 1 s, 1 interval of 1 s")
    # An empty number is none, and not that of the first CPU.
    assert page.locator("#cpu-chip").is_hidden()
    assert re.fullmatch(r"all: [\d.]+ m?s, 100 %", text(page, "flame-detail"))
    assert rows(page, "entries")[0][0] == "0" and "CPU" in page.locator("#entries th").all_inner_texts()


def test_a_clock_that_was_set_is_told_and_tables_go_by_it(opened, tmp_path):
    intervals = seconds(6)
    for place, windows in enumerate(intervals):
        set_to = [HEADER["clock_offset_ns"] + 3600 * SECOND] if place == 3 else []
        rows_of_clock = np.array(set_to, "i8").astype([("offset_ns", "i8")])
        windows.append(replace(windows[0], probe="agent", table="clock", rows=rows_of_clock))
    path, payload = of(intervals, tmp_path)
    page = opened(path)
    chip = page.locator("#quality .chip", has_text="clock").last
    chip.locator("summary").click()
    assert "by 1 h 00 min forward at 1970-01-02 00:00:03 UTC." in chip.inner_text()
    tables = CsvTables(Source.from_header(HEADER), Selection(series={"cpustate.time"}))
    lines = [line for windows in intervals for _, told in tables.lines(windows) for line in told.decode().splitlines()]
    hours = [line.partition("T")[2][:2] for line in lines if line[0].isdigit()]
    assert hours == ["00"] * 6 + ["01"] * 6
