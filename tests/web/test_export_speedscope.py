"""Exports in speedscope: its own page reads them, and shows the names, totals and units that were exported.

What its importer has understood is what the page exports again, to the nanosecond; what readers see is on the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Page
from unit.deep_samples import EVIL, HZ, write_deep
from unit.synthetic import SECOND

from tracer.commands import main
from tracer.escape import printable

pytestmark = pytest.mark.timeout(300)

Stacks = dict[tuple[str, ...], int]
Read = Callable[[Path], Page]

#: All of ``write_deep``: 4 s of 47 samples, and of blocks.
ON_NS, OFF_NS = 4 * 47 * (SECOND // HZ), 4 * (SECOND // 2) + 6 + 4 * 7
EVIL_TASK, EVIL_FUNCTION = printable(EVIL[:16]), printable(EVIL)
PROFILES = [
    ["on-CPU: all", "3.76s"],
    ["on-CPU: hog[60]", "3.36s"],
    [f'on-CPU: "{EVIL_TASK}"[9]', "400.00ms"],
    ["off-CPU: all", "2.00s"],
    ["off-CPU: hog[60]", "2.00s"],
    ["off-CPU: pid 9", "28.00ns"],
]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_deep(tmp_path_factory.mktemp("deep") / "node.fsk")


@pytest.fixture
def read(browser: Browser, web: Path) -> Iterator[Read]:
    """Read a file as speedscope's Import does; what it complains of is an error at the end."""
    release = web / "node_modules/speedscope/dist/release"
    context = browser.new_context(offline=True)
    complaints: list[str] = []

    def _read(path: Path) -> Page:
        page = context.new_page()
        page.on("console", lambda one: complaints.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda one: complaints.append(str(one)))
        page.on("dialog", lambda one: complaints.append(f"dialog: {one.message}"))
        page.goto((release / "index.html").as_uri())
        page.set_input_files("input[type=file]", path)
        page.get_by_text("Export").wait_for()
        return page

    yield _read
    context.close()
    assert complaints == []


def exported(recording: Path, form: str, folder: Path, *options: str) -> Path:
    path = folder / {"speedscope": "x.speedscope.json", "pprof": "x.pb.gz", "folded": "x.folded"}[form]
    done = CliRunner().invoke(main, ["export", str(recording), "--format", form, "-o", str(path), *options])
    assert done.exit_code == 0, done.output
    return path


def understood(page: Page) -> dict[str, Any]:
    """Return what the page exports of what it has read, in its own format."""
    with page.expect_download() as download:
        page.get_by_text("Export").click()
    return json.loads(download.value.path().read_text())


def stacks_of(profile: dict[str, Any], frames: list[dict[str, Any]]) -> Stacks:
    """Return weights by stack, the outermost frame first, of a profile of samples or of events."""
    found: Stacks = {}

    def add(stack: list[int], weight: int) -> None:
        names = tuple(frames[place]["name"] for place in stack)
        if weight:
            found[names] = found.get(names, 0) + weight

    if profile["type"] == "sampled":
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            add(stack, weight)
        return found
    now, opened = profile["startValue"], []
    for event in profile["events"]:
        add(opened, event["at"] - now)
        now = event["at"]
        if event["type"] == "O":
            opened.append(event["frame"])
        else:
            assert opened.pop() == event["frame"]
    assert not opened and now == profile["endValue"]
    return found


def rows_of(page: Page, which: str) -> list[list[str]]:
    return page.locator(which).evaluate_all("(rows) => rows.map((row) => [...row.cells].map((one) => one.textContent))")


def sandwich(page: Page) -> dict[str, tuple[str, str]]:
    """Return what the page shows of each function: all of its time, and its own."""
    page.keyboard.press("3")
    page.get_by_text("Symbol Name").wait_for()
    return {name: (total, own) for total, own, name in rows_of(page, "tr:not([title]):has(td)")}


def test_the_schema_that_exports_are_held_to_is_that_of_the_package(checkout, web):
    published = web / "node_modules/speedscope/dist/release/file-format-schema.json"
    assert published.read_bytes() == (checkout / "tests/vendored/speedscope.schema.json").read_bytes()


def test_its_own_format_is_read_whole(read, recording, tmp_path):
    path = exported(recording, "speedscope", tmp_path)
    page = read(path)
    assert page.title() == "node.fsk of gpu-0417 - speedscope"
    written, back = json.loads(path.read_text()), understood(page)
    assert len(written["profiles"]) == len(PROFILES)
    for ours, theirs in zip(written["profiles"], back["profiles"], strict=True):
        assert (theirs["name"], theirs["unit"], theirs["endValue"]) == (ours["name"], "nanoseconds", ours["endValue"])
        assert stacks_of(theirs, back["shared"]["frames"]) == stacks_of(ours, written["shared"]["frames"])
    assert [one["endValue"] for one in back["profiles"] if one["name"].endswith(": all")] == [ON_NS, OFF_NS]
    assert {(one["name"], one.get("file")) for one in back["shared"]["frames"]} == {
        (one["name"], one.get("file")) for one in written["shared"]["frames"]
    }


def test_its_page_shows_profiles_totals_and_functions_as_text(read, recording, tmp_path):
    page = read(exported(recording, "speedscope", tmp_path))
    assert sandwich(page) == {
        "spin": ("3.20s (85%)", "3.20s (85%)"),
        EVIL_FUNCTION: ("400.00ms (11%)", "400.00ms (11%)"),
        "operator new(unsigned long) 7": ("160.00ms (4.3%)", "160.00ms (4.3%)"),
        "hog": ("3.36s (89%)", "0.00ns (<0.01%)"),
        "main": ("3.76s (100%)", "0.00ns (<0.01%)"),
        EVIL_TASK: ("400.00ms (11%)", "0.00ns (<0.01%)"),
    }
    page.keyboard.press("t")
    page.get_by_text("Total Weight").wait_for()
    assert [row[1:] for row in rows_of(page, "tr[title]")] == PROFILES
    page.keyboard.press("Escape")
    for number in (2, 3, 4):
        page.keyboard.press("n")
        page.get_by_text(f"{PROFILES[number - 1][0]} ({number}/{len(PROFILES)})").wait_for()
    assert sandwich(page)["nvme_wait"] == ("2.00s (>99%)", "0.00ns (<0.01%)")
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(("kind", "total"), [("oncpu", ON_NS), ("offcpu", OFF_NS)])
def test_pprof_is_read_a_kind_at_a_time(read, recording, tmp_path, kind, total):
    options = ("--series", kind)
    written = json.loads(exported(recording, "speedscope", tmp_path, *options).read_text())
    # pprof has tasks as labels, which speedscope does not read.
    ours: Stacks = {}
    for (_, *frames), ns in stacks_of(written["profiles"][0], written["shared"]["frames"]).items():
        ours[tuple(frames)] = ours.get(tuple(frames), 0) + ns
    back = understood(read(exported(recording, "pprof", tmp_path, *options)))
    (profile,) = back["profiles"]
    assert (profile["unit"], profile["endValue"]) == ("nanoseconds", total)
    assert stacks_of(profile, back["shared"]["frames"]) == ours


def test_folded_stacks_are_read_whole_and_have_no_unit(read, recording, tmp_path):
    path = exported(recording, "folded", tmp_path)
    lines = (re.fullmatch(r"(.*) (\d+)\n?", line) for line in path.read_text().splitlines())
    ours = {tuple(line[1].split(";")): int(line[2]) for line in lines}
    back = understood(read(path))
    (profile,) = back["profiles"]
    assert (profile["unit"], profile["endValue"]) == ("none", ON_NS + OFF_NS)
    assert stacks_of(profile, back["shared"]["frames"]) == ours
