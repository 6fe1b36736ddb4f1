"""The report with a baseline, as its reader has it: what grew, what went and what vanished, by mouse and keyboard."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page
from unit.deep_samples import DEEP_HEADER, EVIL, SAMPLE, deep_windows
from unit.synthetic import OFFSET, SECOND, START, Node, hog_interval
from web.pages import address, drag, find_nothing_wrong, rows, text

from tracer.escape import printable
from tracer.reports.html.page import page as html_page
from tracer.reports.html.payload import Payload
from tracer.window import Window

SECONDS = 20
#: The ill second.
BAD = 7
#: Stacks on the CPU and their samples, of 20 ms each: 71 is spin, 74 operator new, 73 the evil one.
USUAL, ILL = ((71, 40), (74, 10)), ((71, 80), (73, 20))
EVIL_TITLE = "</script><img src=x onerror=alert(1)>"
AGAINST = f"#range={BAD}-{BAD + 1}&baseline=0:0-{BAD}"


def gathered(header: dict[str, Any], *, seconds: int = SECONDS, bad: Sequence[int] = ()) -> Payload:
    payload, node = Payload(header), Node(cpus=2)
    for second in range(seconds):
        samples = np.array([(0, 60, 60, b"hog", *one) for one in (ILL if second in bad else USUAL)], SAMPLE)
        start = START + second * SECOND
        on = Window("oncpu", "samples", start, start + SECOND, samples)
        windows = hog_interval(node) if second in bad else node.interval()
        payload.add_interval([*windows, on, *deep_windows(second)[1:]])
    return payload


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one") / "report.html"
    path.write_text(html_page(gathered(DEEP_HEADER, bad=(BAD,)).text(8 << 20, title="x.fsk"), "report"))
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings of different lengths; the other one's name and host would like to be markup."""
    path = tmp_path_factory.mktemp("two") / "report.html"
    other = gathered({**DEEP_HEADER, "host": EVIL_TITLE}, seconds=10)
    differences = [("cpu / governor", "powersave", EVIL_TITLE)]
    rows = [[EVIL_TITLE, "softirq delay", "31 ms", "80 µs", "", "×390", ""]]
    table = {"title": "peers", "heads": list("abcdefg"), "numbers": [2, 3], "rows": rows, "notes": [EVIL_TITLE]}
    comparison = {"headline": f"node {EVIL_TITLE} is the straggler", "series": "softirq.delay NET_RX"}
    comparison |= {"since_unix_ms": (START + OFFSET + BAD * SECOND) / 1e6, "tables": [table]}
    data = gathered(DEEP_HEADER, bad=(BAD,)).text(8 << 20, title="bad.fsk", comparison=comparison)
    path.write_text(html_page(data, "report", [other.text(8 << 20, title=EVIL_TITLE, differences=differences)]))
    return path


def cells(page: Page, table: str, name: str) -> list[str]:
    (found,) = (row for row in rows(page, table) if row[0].startswith(name))
    return found


def test_a_drag_with_shift_makes_a_baseline_and_everything_follows(opened, report):
    page = opened(report)
    assert not page.locator("#difference").is_visible() and not page.locator("#base-row").is_visible()
    drag(page, "heat", (BAD + 0.2) / SECONDS, (BAD + 0.8) / SECONDS)
    drag(page, "curves", 0.01, (BAD - 0.5) / SECONDS, shift=True)
    assert f"range={BAD}-{BAD + 1}" in address(page) and f"baseline=0%3A0-{BAD}" in address(page)
    assert re.search(r"Baseline: \d\d:\d\d:\d\d\.\d to \d\d:\d\d:\d\d\.\d UTC, 7 s", text(page, "base"))
    assert [row[0] for row in rows(page, "numbers")] == ["selected", "baseline", "change", "whole recording"]
    selected, baseline, change, _ = rows(page, "numbers")
    assert selected[-1] == "≤ 1 s" and "µs" in baseline[-1] and change[-1].startswith("×")
    # Charts show both, wherever they were dragged.
    for chart in ("heat", "curves", "lanes"):
        shown = page.locator(f"#{chart} .u-select").bounding_box()
        base = page.locator(f"#{chart} .u-base").bounding_box()
        assert base["width"] == pytest.approx(BAD * shown["width"], rel=0.05), chart
        assert base["x"] + base["width"] == pytest.approx(shown["x"], abs=4), chart
    first = rows(page, "changes")[0]
    assert first[0] == "runqueue.wait" and first[4] == "≤ 1 s" and first[6].startswith("▲ ×")
    # CPU 1 was held.
    (cpu,) = rows(page, "cpu-changes")
    assert cpu[0] == "1" and cpu[1] == "97 %" and abs(int(cpu[2].split()[0]) - 37) <= 3
    # CPU 1 waited in the one second, and as usual before.
    (held, other) = rows(page, "entries")
    assert (held[0], other[0]) == ("1", "0") and held[4] == "≤ 1 s" and "µs" in held[6]
    of_both, of_cpu_1, of_cpu_0 = (int(re.sub(r"\D", "", one[1])) for one in (selected, held, other))
    assert of_both == of_cpu_1 + of_cpu_0
    ill = [row for row in rows(page, "marks") if row[0] == "selection"]
    assert "waited 949 ms for CPU 1" in ill[0][-1]
    drag(page, "lanes", 0.5, 0.9)
    # What began in the baseline and went on behind it.
    assert {row[0] for row in rows(page, "marks")} <= {"baseline"}
    assert "µs" in rows(page, "entries")[0][4]
    page.evaluate(f"location.hash = 'range=0-{BAD}&baseline=0:{BAD}-{BAD + 1}'")
    page.wait_for_function(f"document.querySelector('#range').textContent.includes('{BAD} s')")
    assert [row[1:] for row in rows(page, "marks") if row[0] == "baseline"] == [row[1:] for row in ill]
    worst = {row[0]: row for row in rows(page, "entries")}["1"]
    assert "µs" in worst[4] and worst[6] == "≤ 1 s"
    page.evaluate(f"location.hash = 'range=10-18&baseline=0:0-{BAD}'")
    page.wait_for_function("document.querySelector('#range').textContent.includes('8 s')")
    assert "range=10-18" in address(page) and f"baseline=0%3A0-{BAD}" in address(page)
    page.locator("#against").select_option(label="nothing")
    assert "baseline" not in address(page) and not page.locator("#difference").is_visible()
    assert [row[0] for row in rows(page, "numbers")] == ["selected", "whole recording"]


def test_stacks_that_grew_that_went_and_that_vanished_are_all_there(opened, report):
    page = opened(report, AGAINST)
    assert "On CPU: 2 s/s, 1 s/s in the baseline (▲ ×2)" in text(page, "flame-total")
    assert cells(page, "top", "spin")[2:5] == ["1.6 s/s", "800 ms/s", "▲ ×2"]
    assert cells(page, "top", "operator new")[2:5] == ["0 ns/s", "200 ms/s", "▼ gone"]
    evil = printable(EVIL).split("\\", 1)[0]
    assert cells(page, "top", evil)[2:5] == ["400 ms/s", "0 ns/s", "▲ new"]
    assert cells(page, "top", "main")[5:] == ["2 s/s", "1 s/s", "▲ ×2"]
    # Of main, 0.8 s/s are in both, 1.2 s/s were added and 0.2 s/s went: all of it has width.
    page.focus("#flame")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    assert "1.2 s/s was added and 200 ms/s went" in text(page, "flame-detail")
    assert shares(page) == pytest.approx({"same": 0.8 / 2.2, "more": 1.2 / 2.2, "less": 0.2 / 2.2}, abs=0.05)
    page.check("#only-changes")
    assert shares(page) == pytest.approx({"same": 0, "more": 1.2 / 1.4, "less": 0.2 / 1.4}, abs=0.05)
    page.fill("#search", "operator")
    assert text(page, "matched").startswith("0 ns/s, 200 ms/s in the baseline (▼ gone) matched, 1 frames")
    assert "hatched" in text(page, "legend") and "▲" in text(page, "legend")


def shares(page: Page) -> dict[str, float]:
    """Return how much of the first row of the flame graph has the colour of each part."""
    return page.evaluate(
        """() => {
      const canvas = document.getElementById("flame");
      const style = getComputedStyle(document.documentElement);
      const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
      const copy = new OffscreenCanvas(canvas.width, 1).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, -2 * devicePixelRatio);
      const row = copy.getImageData(0, 0, canvas.width, 1).data;
      return Object.fromEntries(["same", "more", "less"].map((part) => {
        const wanted = rgb(style.getPropertyValue(`--change-${part}`).trim());
        let found = 0;
        for (let at = 0; at < row.length; at += 4)
          if (wanted.every((value, one) => Math.abs(row[at + one] - value) < 3)) found++;
        return [part, found / canvas.width];
      }));
    }"""
    )


def test_nothing_has_changed_against_the_same_range(opened, report):
    page = opened(report, "#range=0-5&baseline=0:0-5")
    assert {row[place] for row in rows(page, "changes") for place in (3, 6, 9)} <= {"=", "–"}
    assert {row[place] for row in rows(page, "top") for place in (4, 7)} == {"="}
    assert "spent as in the baseline" in text(page, "cpu-changes") and not text(page, "setup-changes")


def test_time_that_was_not_measured_counts_for_no_rate(opened, tmp_path):
    payload, node = Payload(DEEP_HEADER), Node(cpus=2)
    for part in (5, 0, 5):
        for _ in range(part):
            payload.add_interval(node.interval())
        if not part:
            payload.add_interval(node.interval(length=20 * SECOND, quiet=True))
    assert payload.summary.intervals.paused == 1
    path = tmp_path / "pause.html"
    path.write_text(html_page(payload.text(8 << 20), "pause"))
    page = opened(path, "#range=5-30&baseline=0:0-5")
    assert "25 s (5 s of it measured)" in text(page, "range")
    (waits,) = (row for row in rows(page, "changes") if row[0] == "runqueue.wait")
    assert waits[7:] == ["3 k/s", "3 k/s", "="]


def test_the_keyboard_alone_compares(opened, report):
    page = opened(report, f"#range={BAD}-{BAD + 1}")
    page.focus("#against")
    page.keyboard.press("ArrowDown")
    assert f"baseline=0%3A0-{BAD}" in address(page)
    for name in ("base-from", "base-to", "to-difference"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == name
        if name != "to-difference":
            page.keyboard.press("ArrowRight" if name == "base-from" else "ArrowLeft")
    assert f"baseline=0%3A1-{BAD - 1}" in address(page)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "difference-title"
    page.focus("#against")
    page.keyboard.press("ArrowUp")
    assert "baseline" not in address(page)


def test_what_no_range_or_no_such_baseline_means(opened, report):
    page = opened(report, "#baseline=9:1-2")
    for fragment in ("#baseline=0:5-3", "#baseline=x", "#baseline=0:0-99"):
        page.evaluate(f"location.hash = '{fragment}'")
        assert text(page, "range").startswith("All:")
    page.evaluate("location.hash = ''")
    page.wait_for_selector("#base-row", state="hidden")
    # The halves.
    page.locator("#against").select_option(label="another time of this recording")
    assert "range=10-20" in address(page) and "baseline=0%3A0-10" in address(page)


def test_another_recording_is_beside_on_the_same_scales(opened, pair):
    page = opened(pair)
    assert page.locator("img").count() == 0
    assert EVIL_TITLE in text(page, "base") and EVIL_TITLE in text(page, "beside")
    assert EVIL_TITLE in text(page, "difference-what")
    assert cells(page, "setup-changes", "cpu / governor")[1:] == ["powersave", EVIL_TITLE]
    # Twice as long: as much per second, but for the one ill second; 190 samples beside 100 don't tell that.
    assert cells(page, "top", "operator new")[2:5] == ["190 ms/s", "200 ms/s", "(▼ −5 %)"]
    page.fill("#search", "spin")
    heads = page.locator("#entries th").all_inner_texts()
    assert heads[-2:] == ["baseline p99", "baseline max"]
    drag(page, "beside", 0.21, 0.59)
    assert "baseline=1%3A2-6" in address(page) and "range=" not in address(page)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert "4 s" in text(page, "base") and page.locator("#beside .u-base").is_visible()
    page.locator("#against").select_option(label="nothing")
    assert "baseline=none" in address(page) and not page.locator("#difference").is_visible()


def test_the_straggler_of_a_comparison_says_why_and_shows_it(opened, pair):
    page = opened(pair)
    assert text(page, "comparison-title") == f"node {EVIL_TITLE} is the straggler"
    assert rows(page, "comparison")[0][:2] == [EVIL_TITLE, "softirq delay"]
    assert text(page, "headline").startswith("By itself: ")
    assert page.locator("#comparison button").inner_text().endswith(" UTC")
    chosen = "document.getElementById('series').selectedOptions[0].text"
    assert page.evaluate(chosen) == "softirq.delay NET_RX"
    page.locator("#series").select_option(label="runqueue.wait")
    page.locator("#comparison button").click()
    assert page.evaluate(chosen) == "softirq.delay NET_RX" and f"range={BAD}-20" in address(page)


def test_axe_finds_nothing(opened, pair):
    page = opened(pair, f"#range={BAD}-{BAD + 2}", width=800, theme="dark")
    find_nothing_wrong(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
