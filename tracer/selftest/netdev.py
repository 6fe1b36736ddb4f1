"""netdev: packets and bytes over loopback."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence

_HEADERS = 20 + 8  # IPv4, UDP; loopback counts 14 bytes of Ethernet as well


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge loopback's counters by what was sent and by /proc/net/dev."""
    scene = evidence["loopback"]
    rows = scene.rows("netdev", "link")
    lo = rows[rows["device"] == b"lo"]
    told = scene.told["packets"]
    for unit, place, least in (
        ("packets", 1, told["sent"]),
        ("bytes", 0, told["sent"] * (told["size"] + _HEADERS)),
    ):
        sent = int(lo[f"tx_{unit}"].sum())
        span = scene.span(lambda counts, place=place: counts.devices.get("lo", (0, 0))[place])  # type: ignore[misc]
        yield Check.of(
            span.least <= sent <= span.most and sent >= least,
            f"{sent:,} {unit} over loopback",
            f"{least:,} sent, {span} in /proc/net/dev",
        )
