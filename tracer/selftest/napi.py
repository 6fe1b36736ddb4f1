"""napi: packets through namespaces of our own, on the CPUs' own queues."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.selftest import Check, Evidence


def check(evidence: Evidence) -> Iterator[Check]:
    """Judge the backlog's work: no less than was sent, no more than the network stack took in altogether."""
    scene = evidence["packets"]
    rows = scene.rows("napi", "poll")
    work = int(rows["work"][rows["device"] == b"backlog"].sum())
    sent, path = scene.told["packets"]["sent"], scene.told["packets"]["path"]
    most = scene.span(lambda counts: counts.received_packets).most
    yield Check.of(
        sent <= work <= most,
        f"{work:,} packets from backlogs ({path})",
        f"{sent:,} sent, {most:,} in softnet_stat",
    )
