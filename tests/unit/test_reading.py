"""docs/reading.md gives the limits that the rules use."""

from __future__ import annotations

import re

import pytest

from tracer.alerts import thresholds as alerts
from tracer.analysis import thresholds
from tracer.analysis.blame import MAIN_SHARE
from tracer.analysis.statistics import least
from tracer.probes import all_probes
from tracer.units import duration, percent

T, A = thresholds, alerts


def whole(ns: int) -> str:
    """Return a limit as people write it: 10 min, not 10 min 00 s."""
    return duration(ns).replace(" 00 s", "").replace(" 00 min", "")


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
    "blocked-tasks": [whole(A.HUNG_WARN_NS), whole(A.BLOCKED_WARN_NS), "at least 10 s"],
    "kernel-work": [*map(whole, (A.POOL_WARN_NS, A.LONG_WORK_INFO_NS, A.LONG_WORK_WARN_NS))],
    "rcu": [f"over {whole(A.RCU_WARN_NS)}"],
    "memory": [
        *(whole(A.EXHAUSTION_WARN_NS), whole(A.EXHAUSTION_PAGE_NS), f"over {A.RECLAIM_STALLS} a second"),
        *(percent(A.RECLAIM_SOME), percent(A.RECLAIM_FULL), percent(A.OOM_LEFT)),
    ],
    "precursors": [
        f"{A.TX_TIMEOUTS_PAGE} within {whole(A.TX_TIMEOUTS_SPAN_NS)}",
        f"from {A.CORRECTED_WARN} corrected in {whole(A.CORRECTED_SPAN_NS)} on",
    ],
    "ledger": [
        *(percent(T.LEDGER_LOST), percent(T.LEDGER_CRITICAL)),
        *(duration(T.LEDGER_LEAST_NS), duration(T.LEDGER_WAIT_NS)),
    ],
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


def test_every_table_of_the_light_probes_is_explained(sections):
    told = " ".join(sections.values())
    unsaid = {"agent.clock"}  # it corrects times, and has no number of its own
    light = (probe for probe in all_probes().values() if probe.tier == "light")
    tables = {f"{probe.name}.{table.name}" for probe in light for table in probe.tables} - unsaid
    assert [table for table in sorted(tables) if f"`{table}`" not in told] == []


def test_every_kind_of_precursor_is_explained(sections):
    kinds = next(
        column.help
        for table in all_probes()["precursors"].tables
        for column in table.columns
        if table.name == "told" and column.name == "kind"
    )
    assert [kind for kind in kinds.split(", ") if f"`{kind}`" not in sections["precursors"]] == []


def test_how_many_values_a_quantile_takes(sections):
    said = sections["how-to-read-any-of-them"]
    for name, fraction in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)):
        assert f"{name} {least(fraction)}" in said.replace("takes ", "")


def test_a_main_cause_is_at_least_half(sections):
    assert MAIN_SHARE == 0.5
