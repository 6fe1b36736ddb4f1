"""A close-up in the page: the alert first, its button leads to its seconds; where there are no stacks, it says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from unit.agent_samples import an_alert
from unit.deep_samples import DEEP_HEADER, deep_windows
from unit.synthetic import NET_RX, SECOND, START, Node
from web.pages import address, find_nothing_wrong, rows, text

from tracer.alerts.alert import Severity
from tracer.alerts.record import OCCASION, alert_record
from tracer.reports.html.page import page as html_page
from tracer.reports.html.payload import Payload

NONE_BEFORE = "On CPU: no stacks were recorded then (stacks from 00:00:06 UTC on)"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine seconds from midnight on, the last three with stacks; the alert began after four and was told after five."""
    alert = an_alert(severity=Severity.PAGE, stack=("spin_work",), rule="soft-lockup", title="CPU makes no progress")
    alert = replace(alert, began_ns=START + 4 * SECOND, at_ns=START + 5 * SECOND)
    header = {**DEEP_HEADER, "clock_offset_ns": 86_400 * SECOND - START, OCCASION: alert_record(alert)}
    payload, node = Payload(header), Node(cpus=2)
    for second in range(9):
        payload.add_interval([*node.interval(), *(deep_windows(second) if second >= 6 else ())])
    path = tmp_path_factory.mktemp("report") / "closeup.html"
    path.write_text(html_page(payload.text(8 << 20, title="x.fsk"), "report"))
    return path


def test_the_alert_is_first_and_leads_to_its_seconds(opened, report):
    page = opened(report)
    assert text(page, "headline").startswith("Recorded because of a page: CPU makes no progress.")
    assert page.locator("#findings li").first.inner_text().startswith("!! critical alert soft-lockup: CPU 3 is stuck;")
    (told, *_) = rows(page, "marks")
    assert told[:3] == ["00:00:05.0", "alert: page", "≥ 1 s"]
    find_nothing_wrong(page, contrast=False)
    page.get_by_role("button", name="Show from 00:00:04 UTC on").click()
    assert "range=3-9" in address(page) and text(page, "range") == "Selected: 00:00:03.0 to 00:00:09.0 UTC, 6 s"
    assert text(page, "flame-total").endswith("in the selected range (stacks from 00:00:06 UTC on)")


def test_where_no_stacks_were_recorded_there_is_no_time_of_zero_and_no_difference(opened, report):
    page = opened(report, "#range=0-6")
    assert text(page, "flame-total") == NONE_BEFORE
    page.evaluate("location.hash = 'range=6-9&baseline=0:0-6'")
    page.wait_for_function("document.getElementById('flame-total').textContent.includes('baseline')")
    assert text(page, "flame-total").endswith("in the selected range; the baseline has no such stacks")
    # Rates are of the time with stacks.
    page.evaluate("location.hash = 'range=3-9&baseline=0:6-9'")
    page.wait_for_function("document.getElementById('flame-total').textContent.includes('/s in the baseline')")
    assert "(=)" in text(page, "flame-total")


def test_an_alert_of_no_series_leaves_the_series_as_it_is(opened, tmp_path):
    alert = replace(an_alert(rule="filesystem-error"), began_ns=START + 2 * SECOND, at_ns=START + 2 * SECOND)
    payload, node = Payload({**DEEP_HEADER, OCCASION: alert_record(alert)}), Node(cpus=2)
    for _ in range(3):
        payload.add_interval(node.interval(late={(1, NET_RX): [31_000_000] * 9}))
    path = tmp_path / "filesystem.html"
    path.write_text(html_page(payload.text(8 << 20), "report"))
    page = opened(path)
    assert "NET_RX" in page.locator("#findings li").nth(1).inner_text(), "it is of late softirqs, too"
    chosen = "document.getElementById('series').selectedOptions[0].text"
    assert page.evaluate(chosen) == "runqueue.wait"
    page.select_option("#series", label="hardirq.run")
    page.locator(".finding button").first.click()
    assert page.evaluate(chosen) == "hardirq.run" and "range=1-3" in address(page)
