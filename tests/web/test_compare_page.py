"""``compare --html`` as its reader has it: the straggler under the verdict, beside its twins, one of them at a time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, expect
from sim.recordings import DEMO, slower, twin
from web.pages import address, drag, find_nothing_wrong, rows, text

from tracer.commands import main
from tracer.escape import printable
from tracer.recording import read_recording

SECONDS, SINCE = 40, 20
#: Nodes that would like to be markup, to clear a terminal, to turn text around, to end a string.
ILL, TWINS = '\x1b[2Jcu\u202e"9"\n', ("</b><img src=x onerror=alert(1)>", "cu01", "'; drop\tcu02")
SHOWN, SHOWN_TWINS = printable(ILL), [printable(one) for one in TWINS]
MARKUP = "1</td><script>alert(1)</script>"
SWAPPINESS = "sysctl / vm.swappiness"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The page of four nodes, and what was said on the terminal; softirqs of one come late from the middle on."""
    folder, source = tmp_path_factory.mktemp("nodes"), read_recording(DEMO)
    usual = source.header["fingerprint"]["sysctl"]

    def node(place: int, host: str, **setting: str) -> str:
        header = {"fingerprint": {"sysctl": {**usual, **setting}}}
        fault = slower(("softirq", "delay"), 64, since=SINCE, share=0.1, vector=3) if host == ILL else None
        return str(twin(folder / f"{place}.fsk", source, host, seconds=SECONDS, change=fault, header=header))

    # One of the twins has a setting of its own, too: that is between it and the straggler only.
    paths = [node(0, ILL, **{"vm.swappiness": MARKUP}), node(1, TWINS[0], **{"kernel.watchdog_thresh": "29"})]
    paths += [node(place + 2, host) for place, host in enumerate(TWINS[1:])]
    done = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["compare", "--html", str(folder / "page.html"), *paths])
    assert done.exit_code == 1, done.output
    return folder / "page.html", " ".join(done.stdout.split())


@pytest.fixture
def page(opened, compared: tuple[Path, str]) -> Page:
    return opened(compared[0])


def twin_of(page: Page) -> str:
    """Return which twin is the baseline, and hold every place that says so to it."""
    chosen = page.evaluate("document.getElementById('against').selectedOptions[0].text")
    pressed = page.locator("#beside button[aria-pressed=true]")
    assert pressed.get_attribute("aria-label") == f"Compare with {chosen}"
    assert text(page, "base").startswith(f"Baseline: {chosen}, ") and chosen in text(page, "difference-what")
    assert page.locator("#setup-changes th").all_inner_texts()[2] == chosen
    return chosen


def test_the_verdict_its_numbers_and_what_differs_come_first(page, compared):
    headline = text(page, "comparison-title")
    assert headline in compared[1] and "may be the straggler: NET_RX softirq delay" in headline
    assert page.locator("#comparison").bounding_box()["y"] < page.locator("#headline").bounding_box()["y"] < 900
    assert page.title().startswith(f"{SHOWN}: ") and text(page, "host") == SHOWN
    first, *_, differing = page.locator("#comparison table").all()
    assert first.locator("caption").inner_text().startswith("Suspects: beside the median")
    node, what, own, peers, _, ratio, since = rows(page, "comparison")[0]
    assert (node, what.split(" p")[0], ratio[0]) == (SHOWN, "NET_RX softirq delay", "×")
    assert f"{own} against {peers}" in headline and f"since {since} UTC" in headline
    notes = page.locator("#comparison p").all_inner_texts()
    assert notes[0].startswith("On the same scales below: ") and all(one in notes[0] for one in SHOWN_TWINS)
    assert notes[1].startswith(f"{SHOWN}: likely cause: softirq; confidence low") and notes[2].startswith("Next: ")
    told = [cell.inner_text() for cell in differing.locator("tbody td").all()]
    assert told == [SWAPPINESS, MARKUP, "60", "100 %"]
    assert page.locator("img, #page script").count() == 0


def test_show_takes_the_time_since_then_of_both(page):
    page.locator("#comparison button").first.click()
    found = re.search(r"range=(\d+)-(\d+)&baseline=1%3A(\d+)-(\d+)&series=softirq.delay\+NET_RX", address(page))
    assert found and found.groups()[:2] == found.groups()[2:], address(page)
    first, last = map(int, found.groups()[:2])
    assert abs(first - SINCE) <= 3 and last == SECONDS
    # The bar takes more lines now, and hides nothing of what was gone to.
    bar, title = (page.locator(one).bounding_box() for one in ("#range-bar", "#time-title"))
    assert bar["y"] == 0 and bar["height"] <= title["y"] < bar["height"] + 60
    selected, _, change, _ = rows(page, "numbers")
    assert selected[0] == "selected" and change[5][0] == change[6][0] == "×", change
    assert {row[0] for row in rows(page, "marks")} <= {"selection", "baseline"}
    # It began then: before, nothing is so different.
    page.evaluate(f"location.hash = 'range=0-{SINCE - 3}&baseline=1:0-{SINCE - 3}&series=softirq.delay+NET_RX'")
    expect(page.locator("#range")).to_contain_text(f", {SINCE - 3} s")
    change = rows(page, "numbers")[2]
    assert not change[5].startswith(("×", "÷")), change


def test_any_twin_and_any_part_of_it_can_be_the_baseline(page):
    titles = page.locator("#beside h3 .name").all_inner_texts()
    assert sorted(titles) == sorted(SHOWN_TWINS) and twin_of(page) == titles[0]
    buttons = page.locator("#beside button")
    for place in (2, 1):
        buttons.nth(place).click()
        assert twin_of(page) == titles[place]
    page.locator("#against").select_option(label=titles[0])
    assert twin_of(page) == titles[0]
    # A drag in a twin's picture takes that part of it; another twin is then compared at the same time.
    second = page.locator("#beside .u-over").nth(1)
    second.scroll_into_view_if_needed()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    box = second.bounding_box()
    for move, x in (("move", 0.26), ("down", 0), ("move", 0.5), ("move", 0.74), ("up", 0)):
        getattr(page.mouse, move)(*([box["x"] + x * box["width"], box["y"] + 20] if move == "move" else []))
    assert f"baseline=2%3A{int(0.26 * SECONDS)}-{int(0.74 * SECONDS) + 1}" in address(page)
    assert twin_of(page) == titles[1]
    buttons.nth(2).click()
    assert f"baseline=3%3A{int(0.26 * SECONDS)}-{int(0.74 * SECONDS) + 1}" in address(page)
    assert twin_of(page) == titles[2]


def test_settings_are_told_of_the_twin_that_is_shown(page):
    for title in SHOWN_TWINS:
        page.locator("#against").select_option(label=title)
        found = {row[0]: row[1:] for row in rows(page, "setup-changes")}
        assert found[SWAPPINESS] == [MARKUP, "60"]
        own = {"sysctl / kernel.watchdog_thresh"} if title == SHOWN_TWINS[0] else set()
        assert found.keys() - {SWAPPINESS} == own


def test_all_are_on_the_same_axes(page):
    own, *others = [one.bounding_box() for one in page.locator(":is(#heat, #beside) .u-over").all()]
    assert [(one["x"], one["width"]) for one in others] == [(own["x"], own["width"])] * len(TWINS)
    assert len({one["height"] for one in others}) == 1


def test_without_a_range_nothing_is_called_a_selection(page):
    assert page.locator("#histogram-legend .now").inner_text() == "whole recording"
    assert "of the whole recording and of the baseline" in page.locator("#marks caption").inner_text()
    assert {row[0] for row in rows(page, "marks")} == {"whole recording", "baseline"}
    drag(page, "heat", 0.1, 0.9)
    assert page.locator("#histogram-legend .now").inner_text() == "selected"
    assert {row[0] for row in rows(page, "marks")} == {"selection", "baseline"}


def test_the_keyboard_alone_goes_from_twin_to_twin(page):
    page.locator("#comparison button").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "series"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.locator("#beside button:focus").count():
            page.keyboard.press("Enter")
            seen.add(twin_of(page))
        if len(seen) == len(TWINS):
            break
    assert seen == set(SHOWN_TWINS)
    page.keyboard.press("Enter")
    expect(page.locator("#beside button[aria-pressed=true]")).to_have_count(1)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (800, "dark")])
def test_axe_finds_nothing_and_nothing_is_cut(opened, compared, width, theme):
    page = opened(compared[0], width=width, theme=theme)
    find_nothing_wrong(page)
    for narrower in (width, 390):
        page.set_viewport_size({"width": narrower, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
