"""Idle waits in the page: hidden until they are asked for, and said to be."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from unit.deep_samples import DEEP_HEADER
from unit.synthetic import Node
from unit.test_idle import windows
from web.pages import address, find_nothing_wrong, text

from tracer.reports.html.page import page as html_page
from tracer.reports.html.payload import Payload

SAID = "90 % of 4 s: sleep for a set time 3.6 s."


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    payload, node = Payload(DEEP_HEADER), Node(cpus=2)
    for second in range(4):
        payload.add_interval([*node.interval(), *windows(second)])
    path = tmp_path_factory.mktemp("report") / "idle.html"
    path.write_text(html_page(payload.text(8 << 20, title="x.fsk"), "report"))
    return path


def test_idle_waits_are_hidden_until_they_are_asked_for_and_what_is_said_follows_the_range(opened, report):
    page = opened(report, "#stacks=offcpu")
    assert text(page, "flame-total") == "Off CPU: 400 ms"
    assert text(page, "flame-idle") == f"Hid idle waits, {SAID}"
    page.focus("#with-idle")
    page.keyboard.press("Space")
    assert text(page, "flame-total") == "Off CPU: 4 s"
    assert text(page, "flame-idle") == f"Idle waits are {SAID}"
    assert "idle=shown" in address(page)
    find_nothing_wrong(page, contrast=False)
    page.evaluate("location.hash = 'stacks=offcpu&range=0-2&cpu=0'")
    expect(page.locator("#with-idle")).not_to_be_checked()
    assert text(page, "flame-idle") == "Hid idle waits, 100 % of 1.8 s: sleep for a set time 1.8 s."
    page.get_by_role("tab", name="Waits for a CPU").or_(page.get_by_role("tab", name="Interrupts")).first.click()
    expect(page.locator("#with-idle")).to_be_hidden()
    assert text(page, "flame-idle") == ""


def test_a_baseline_is_compared_without_them_too(opened, report):
    page = opened(report, "#stacks=offcpu&baseline=0:0-2&range=2-4")
    assert text(page, "flame-total").startswith("Off CPU: 100 ms/s, 100 ms/s in the baseline"), text(
        page, "flame-total"
    )
    page.check("#with-idle")
    assert text(page, "flame-total").startswith("Off CPU: 1 s/s, 1 s/s"), text(page, "flame-total")
