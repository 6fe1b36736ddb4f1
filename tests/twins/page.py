"""docs/twins.md, from a run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tests.bench.results import table

from .judged import Judged
from .thieves import Account

__all__ = ["page", "results"]

NOTE = "<!-- Written by `make twins` from what it measured: edit tests/twins, not this page. -->"
INTRODUCTION = (
    "Real recordings of one machine, under many names, stand for a cluster; into some of them a fault was injected "
    "while they were recorded. `make twins` makes the machine a node: a job of two ranks in a barrier loop, in a "
    "cgroup with a quota that it doesn't need, reads its data from a loop device, and 1,500 packets a second go from "
    "one network namespace to another. It records that again and again (`foreshock record --probes auto,ledger`), as "
    "a host of another name each time, and has `foreshock compare` judge the healthy nodes together with one that has "
    "a fault. The recordings are made one after the other, so each is of another time, with whatever else the machine "
    "did meanwhile: real nodes of one time differ less."
)
RIGHT = (
    "Right means: this node and no other is accused, the class of cause is right, whoever took the time is named, so "
    "is the setting that differs, and it is said to have begun when it did, to 2 s."
)
LEDGER = (
    "A barrier loop of two ranks, of which rank 1 has a hundred times the work of rank 0, so that it nearly always "
    "wants its CPU. Each thief takes time from it for some seconds; what the ledger says is held against what others "
    "know of it. Right means: within 10 %, named as what took most, and the verdict is the right one: a noisy "
    "neighbour is no quota, and a quota no neighbour."
)
GUESTS = (
    "Recordings made in an emulated guest, of another kernel on another CPU, and one of CPU 0 only, among the healthy "
    "nodes: they must be named as not comparable, and nobody accused."
)


def results(clusters: Sequence[Judged]) -> str:
    """Return the table of what was said, one row per cluster."""
    head = ("cluster", "nodes", "injected", "cause said", "began, said", "compare took", "right")
    rows = [_row(one) for one in clusters]
    return table(head, rows).replace("---:", "---")


def page(
    clusters: Sequence[Judged],
    accounts: Sequence[Account],
    guests: Judged | None,
    lacking: Sequence[str],
    facts: Iterable[tuple[str, str]],
) -> str:
    """Return the whole page; ``lacking`` says what was not run, ``facts`` describe the machine."""
    right = sum(not list(one.misses()) for one in clusters)
    parts = [
        "# The twins: faults among real recordings",
        NOTE,
        INTRODUCTION,
        RIGHT,
        f"**{right} of {len(clusters)} clusters are judged right.** "
        + (f"Not run: {'; '.join(lacking)}." if lacking else ""),
        results(clusters),
        "## What was said",
        *(part for one in clusters for part in _told(one)),
        *(["## Whose time was taken", LEDGER, _ledger(accounts)] if accounts else []),
        *(["## Guests", GUESTS, *_guests(guests)] if guests else []),
        "## The machine",
        table(("", ""), list(facts)).replace("---:", "---"),
    ]
    return "\n\n".join(part if part.startswith(("|", "#", "<", ">", "- ")) else _fill(part) for part in parts) + "\n"


def _row(one: Judged) -> tuple[str, ...]:
    began = "" if one.fault is None else "before" if one.fault.early else f"{one.began:.0f} s"
    said = _onset(one.onset) if one.suspect else ""
    return (
        one.cluster,
        str(one.nodes),
        one.fault.injected if one.fault else "nothing",
        str(one.suspect.get("cause", "nobody accused" if not one.others else "")),
        ", ".join(filter(None, (began, said))),
        f"{one.took_s:.1f} s",
        "yes" if not list(one.misses()) else f"**no**: {'; '.join(one.misses())}",
    )


def _onset(second: float | None) -> str:
    if second is None:
        return "not said"
    return f"{second:.0f} s" if second else "the start"


def _told(one: Judged) -> Iterator[str]:
    yield f"**{one.cluster}**:"
    yield _quoted(one.verdict)


def _quoted(text: str) -> str:
    return textwrap.fill(text, 118, initial_indent="> ", subsequent_indent="> ", break_on_hyphens=False)


def _ledger(accounts: Sequence[Account]) -> str:
    head = ("thief", "what it does", "ledger", "truth", "difference", "took most", "verdict", "right")
    rows = [
        (
            one.thief.name,
            one.thief.injected,
            f"{one.ns / 1e9:.3f} s",
            f"{one.truth_ns / 1e9:.3f} s: {one.thief.truth}",
            f"{one.error:+.1%}",
            one.most.rpartition("-")[0] + ")" if one.most.endswith(")") else one.most,
            one.cause,
            "yes" if one.right else "**no**",
        )
        for one in accounts
    ]
    return table(head, rows).replace("---:", "---")


def _guests(guests: Judged) -> Iterator[str]:
    yield _quoted(guests.verdict)
    yield "\n".join(f"- skipped: {one['file'].rpartition('/')[2]}: {one['why']}" for one in guests.tree["skipped"])
    yield f"**Not right**: {'; '.join(guests.misses())}." if list(guests.misses()) else "Right."


def _fill(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False)
