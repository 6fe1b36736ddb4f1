"""One CPU of many: its lane is clicked, or chosen by keyboard, and all that is told by CPU is of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from unit.alert_views import stalls
from unit.deep_samples import DEEP_HEADER, EVIL, OFF, deep_windows
from unit.synthetic import SECOND, START, TIMER, Node, hog_interval
from web.pages import address, find_nothing_wrong, in_view, text

from tracer.reports.html.page import page as html_page
from tracer.reports.html.payload import Payload
from tracer.window import Window

SECONDS, BAD = 20, 7


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node whose CPU 1 was held for a second, and then stood still for two."""
    payload, node = Payload(DEEP_HEADER), Node(cpus=2)
    for second in range(SECONDS):
        windows = [*(hog_interval(node) if second == BAD else node.interval()), *map(with_wakers, deep_windows(second))]
        start, end = windows[0].start_ns, windows[0].end_ns
        if second in (BAD + 1, BAD + 2):
            since = START + (BAD + 1) * SECOND
            row = {"cpu": 1, "since_ns": since, "duration_ns": end - since, "time_ns": end, "pid": 1234, "comm": b"hog"}
            windows.append(Window("cpustall", "stalls", start, end, stalls(row)))
        payload.add_interval(windows)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html_page(payload.text(8 << 20, title="x.fsk"), "report"))
    return path


def with_wakers(window: Window) -> Window:
    """Say who ended the blocks: a task that would like to be markup, and a softirq."""
    if (window.probe, window.table) != ("offcpu", "samples"):
        return window
    rows = np.zeros(len(window.rows), [*OFF.descr, ("waker_kind", "S1"), ("waker_vector", "u1"), ("waker_comm", "S16")])
    for name in OFF.names or ():
        rows[name] = window.rows[name]
    rows["waker_kind"], rows["waker_comm"], rows["waker_vector"] = (b"t", b"s"), (EVIL[:16], b""), (0, TIMER)
    return Window(window.probe, window.table, window.start_ns, window.end_ns, rows, window.losses)


def click_lane(page: Page, cpu: int) -> None:
    box = in_view(page, "lanes")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + (cpu + 0.5) * box["height"] / 2)


def test_a_click_on_a_lane_shows_that_cpu_only(opened, report):
    page = opened(report)
    chip, total = page.locator("#cpu-chip"), page.locator("#flame-total")
    expect(chip).to_be_hidden()
    everything = page.locator("#numbers tbody tr").first.inner_text()
    assert "bytes" not in everything and total.inner_text().startswith("On CPU: 18.8 s")
    click_lane(page, 0)
    expect(chip).to_have_text(re.compile("CPU 0 only"))
    assert "cpu=0" in address(page)
    # 40 of 47 samples a second are of CPU 0.
    expect(total).to_have_text("On CPU: 16 s on CPU 0")
    of_cpu = page.locator("#numbers tbody tr").first.inner_text().split("\t")
    assert 0 < int(re.sub(r"\D", "", of_cpu[1])) < int(re.sub(r"\D", "", everything.split("\t")[1]))
    assert of_cpu[-1] != everything.split("\t")[-1], "the long waits were on CPU 1"
    assert {row.split("\t")[0] for row in page.locator("#entries tbody tr").all_inner_texts()} == {"0"}
    assert "No alert, and none of the worst single events" in text(page, "marks")
    assert text(page, "cpu-note") == "CPU 0 only."
    click_lane(page, 1)
    expect(chip).to_have_text(re.compile("CPU 1 only"))
    expect(total).to_have_text("On CPU: 2.8 s on CPU 1")
    assert "waited 949 ms for CPU 1" in text(page, "marks")
    click_lane(page, 1)
    expect(chip).to_be_hidden()
    assert "cpu=" not in address(page) and page.locator("#numbers tbody tr").first.inner_text() == everything


def test_a_lane_that_is_dragged_over_selects_time_and_no_cpu(opened, report):
    page = opened(report)
    box = in_view(page, "lanes")
    page.mouse.move(box["x"] + box["width"] * 0.12, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 10)
    page.mouse.move(box["x"] + box["width"] * 0.58, box["y"] + 10)
    page.mouse.up()
    assert "range=2-12" in address(page) and "cpu=" not in address(page)


def test_a_cpu_is_chosen_and_given_up_by_keyboard(opened, report):
    page = opened(report)
    page.focus("#cpu")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#cpu-chip")).to_have_text(re.compile("CPU 0 only"))
    page.focus("#cpu-chip")
    page.keyboard.press("Enter")
    expect(page.locator("#cpu-chip")).to_be_hidden()
    assert page.input_value("#cpu") == ""


def test_the_address_holds_the_cpu_beside_range_and_stacks(opened, report):
    page = opened(report, f"#range={BAD}-{BAD + 1}&cpu=1&stacks=waits")
    assert text(page, "flame-total") == "Waits for a CPU: 1.59 s on CPU 1 in the selected range"
    assert page.input_value("#cpu") == "1"
    page.evaluate("location.hash = 'cpu=77&stacks=waits'")
    expect(page.locator("#cpu-chip")).to_be_hidden()
    assert text(page, "flame-total") == "Waits for a CPU: 1.59 s"


def test_waits_are_by_holder_interrupts_by_what_ran_and_off_cpu_time_by_waker(opened, report):
    page = opened(report, "#stacks=waits")
    page.focus("#flame")
    for key, at in (("ArrowDown", "hog: 1.48 s"), ("ArrowDown", "python3: 892 ms")):
        page.keyboard.press(key)
        assert text(page, "flame-detail").startswith(at), key
    assert "waiting task" in text(page, "legend") and "program" not in text(page, "legend")
    page.get_by_role("tab", name="Interrupts").click()
    assert {"NET_RX", "TIMER", "local_timer"} <= {
        row.split("\t")[0] for row in page.locator("#top tr").all_inner_texts()
    }
    page.get_by_role("tab", name="Off CPU, by waker").click()
    page.focus("#flame")
    page.keyboard.press("ArrowDown")
    assert "<img src=x" in text(page, "flame-detail") or "</script>" in text(page, "flame-detail")
    assert "(woken by)" in text(page, "flame-detail") and page.locator("img").count() == 0


def test_what_made_no_progress_is_seen_and_in_the_table(opened, report):
    page = opened(report, f"#range={BAD + 1}-{BAD + 3}")
    page.click("#lanes-table summary")
    page.wait_for_selector("#lanes-table tbody tr")
    rows = [row.split("\t") for row in page.locator("#lanes-table tbody tr").all_inner_texts()]
    assert [(row[0], row[-1]) for row in rows] == [("0", "0 %"), ("1", "100 %")]
    seen = page.evaluate(
        """(shares) => {
          const canvas = document.querySelector("#lanes canvas"), box = canvas.getBoundingClientRect();
          const over = document.querySelector("#lanes .u-over").getBoundingClientRect();
          const ratio = canvas.width / box.width;
          const row = Math.round((over.top + over.height * 0.75 - box.top) * ratio);
          const { data } = canvas.getContext("2d").getImageData(0, row, canvas.width, 1);
          return shares.map((share) => {
            const at = 4 * Math.round((over.left + over.width * share - box.left) * ratio);
            return [...data.slice(at, at + 3)];
          });
        }""",
        [(BAD + 2) / SECONDS, 3 / SECONDS],
    )
    stalled = [0x4B, 0x0A, 0x5E]
    assert seen[0] == stalled != seen[1]


def test_axe_finds_nothing(opened, report):
    page = opened(report, f"#range={BAD}-{BAD + 2}&cpu=1&stacks=wakers")
    page.click("#lanes-table summary")
    find_nothing_wrong(page)


def test_a_cpu_beside_a_baseline_is_that_cpu_in_both(opened, report):
    page = opened(report, f"#range={BAD}-{BAD + 1}&baseline=0:0-5&cpu=1&stacks=oncpu")
    assert text(page, "flame-total").startswith("On CPU: 140 ms/s, 140 ms/s in the baseline")
    assert "on CPU 1" in text(page, "flame-total")
