"""docs/reading.md gives the limits that the rules use."""

from __future__ import annotations

import re

import pytest

from tracer.analysis import thresholds
from tracer.analysis.blame import MAIN_SHARE
from tracer.units import duration, percent

T = thresholds
LIMITS = {
    "run-queue-wait": [duration(T.RUNQUEUE_P99_NS), duration(T.RUNQUEUE_WORST_NS), duration(T.RUNQUEUE_CRITICAL_NS)],
    "cpu-time": [percent(T.CPU_INTERRUPTS), percent(T.CPU_BUSY), percent(T.CPU_IMBALANCE)],
    "softirq-delay": [duration(ns) for ns in (T.SOFTIRQ_DELAY_P99_NS, T.SOFTIRQ_DELAY_WORST_NS, T.SOFTIRQ_CRITICAL_NS)],
    "softirq-run": [duration(T.SOFTIRQ_RUN_WORST_NS)],
    "hard-interrupts": [
        *(percent(T.HARDIRQ_SHARE), percent(3 * T.HARDIRQ_SHARE), percent(T.HARDIRQ_NONE_SHARE)),
        *(f"{T.HARDIRQ_RATE // 1000} k/s", f"{T.HARDIRQ_NONE_RATE}/s", duration(T.HARDIRQ_WORST_NS)),
    ],
    "network-polling": [
        percent(T.NAPI_FULL),
        str(T.NAPI_LEAST_POLLS),
        str(T.NAPI_BUDGET),
        duration(T.NAPI_GAP_WORST_NS),
    ],
    "devices": [percent(T.DEVICE_DROPS), str(T.DEVICE_DROPS_LEAST)],
    "stalls": [duration(T.STALL_NS)],
    "watchdog": [duration(T.FEED_WORST_NS), duration(T.FEED_CRITICAL_NS)],
    "losses": [percent(T.LOSSES), str(T.LOSSES_LEAST)],
    "own-cost": [percent(T.OWN_CPU)],
}


@pytest.fixture(scope="module")
def sections(checkout) -> dict[str, str]:
    parts = re.split(r"^## (.*)$", (checkout / "docs" / "reading.md").read_text(), flags=re.M)
    return {title.lower().replace(" ", "-"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("anchor", LIMITS)
def test_limits_are_those_of_the_rules(sections, anchor):
    assert [limit for limit in LIMITS[anchor] if limit not in sections[anchor]] == []


def test_links_inside_lead_to_sections(sections, checkout):
    links = re.findall(r"\]\(#([\w-]+)\)", (checkout / "docs" / "reading.md").read_text())
    assert set(links) <= set(sections)


def test_a_main_cause_is_at_least_half(sections):
    assert MAIN_SHARE == 0.5
