"""Ranks of one job beside each other: who sleeps while its peers run, and for whom they all wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracer.analysis.jobs import Jobs
from tracer.analysis.names import quoted
from tracer.analysis.rows import numbers
from tracer.analysis.sleeps import SLEEPS
from tracer.compare.node import Node, RankTime
from tracer.units import many, percent

__all__ = ["Apart", "Roll", "apart", "sentence", "summed"]

#: So many peers tell what a rank usually does.
_LEAST_PEERS = 3
#: Awake for a tenth of what its peers are, or they of what it is; of peers that hardly are nobody hangs.
_TENTH, _LEAST_AWAKE, _BUSY = 0.1, 0.2, 0.5
_MOST_RANKS = 1024
_NAMED = 8
#: Running, or being kept from it.
_AWAKE = ("running_ns", "waiting_ns", "throttled_ns", "softirq_ns", "hardirq_ns", "reclaim_ns", "compaction_ns")
_COLUMNS = (*_AWAKE, *SLEEPS)
_OTHERS = 0


class Roll:
    """Adds up what each rank of a recording did. ``whole``: all processes of the node were traced."""

    def __init__(self, jobs: Jobs, *, whole: bool) -> None:
        self._jobs, self._whole = jobs, whole
        self._ranks: list[tuple[str, int]] = []
        self._places: dict[int, int] = {}
        self._sums: dict[tuple[str, int], np.ndarray] = {}

    def learn(self) -> None:
        """Look again who is there: the recording has told of members."""
        there: dict[tuple[str, int], list[int]] = {}
        for one in self._jobs.members():
            if one.rank >= 0 and not one.ended and len(there) < _MOST_RANKS:
                there.setdefault((one.party.title, one.rank), []).append(one.pid)
        self._ranks = list(there)
        self._places = {pid: place for place, pids in enumerate(there.values()) for pid in pids}

    def add(self, rows: np.ndarray, length_ns: int) -> None:
        """Add ``ledger.time`` of one interval: who is there and has no row has slept all the time."""
        if not self._ranks:
            return
        columns = np.stack([numbers(rows, name).astype(np.float64) for name in _COLUMNS], axis=1)
        pids = numbers(rows, "pid").tolist()
        places = np.array([self._places.get(int(pid), -1) for pid in pids], int)
        sums = np.zeros((len(self._ranks), len(_COLUMNS)))
        np.add.at(sums, places[places >= 0], columns[places >= 0])
        # Processes with little time are told together: who is among them did less than all of those.
        others = columns[[pid == _OTHERS for pid in pids], : len(_AWAKE)].sum()
        told = set(places.tolist()) if others > _TENTH * length_ns or not self._whole else range(len(self._ranks))
        for place in told:
            if place >= 0:
                one = self._sums.setdefault(self._ranks[place], np.zeros(1 + len(_COLUMNS)))
                one += (length_ns, *sums[place])

    def called(self) -> dict[tuple[str, int], RankTime]:
        """Return what was added up, by job and rank."""
        return {rank: _time(sums.astype(int).tolist()) for rank, sums in self._sums.items()}


def _time(sums: Sequence[int]) -> RankTime:
    wall_ns, *rest = sums
    slept = zip(SLEEPS, rest[len(_AWAKE) :], strict=True)
    return RankTime(wall_ns, sum(rest[: len(_AWAKE)]), {name: ns for name, ns in slept if ns})


@dataclass(frozen=True)
class Apart:
    """A rank that does otherwise than ``peers``, other ranks of its job on any node; the job has ``of``.

    ``waits``: it sleeps while they don't; ``runs``: they sleep while it doesn't. ``slept`` and ``usual`` are shares of
    the time, its own and the median of theirs. ``slept_for`` is what it slept for most, in words; "" where it does not
    show.
    """

    label: str
    job: str
    rank: int
    kind: Literal["waits", "runs"]
    slept: float
    usual: float
    peers: int
    of: int
    slept_for: str


def apart(nodes: Sequence[Node], labels: Sequence[str]) -> tuple[Apart, ...]:
    """Return the ranks that do otherwise than their peers, by job, those that sleep most first."""
    jobs: dict[str, dict[tuple[str, str, int], tuple[str, int, RankTime]]] = {}
    for node, label in zip(nodes, labels, strict=True):
        for (job, rank), time in node.ranks.items():
            # Two recordings of one node tell of the same ranks.
            ranks, key = jobs.setdefault(job, {}), (node.source.host, node.source.boot_id, rank)
            if key not in ranks or ranks[key][2].wall_ns < time.wall_ns:
                ranks[key] = (label, rank, time)
    found = [one for job, ranks in jobs.items() for one in _of_job(job, [*ranks.values()])]
    return tuple(sorted(found, key=lambda one: (one.kind, one.job, -one.slept, one.rank)))


def _of_job(job: str, ranks: Sequence[tuple[str, int, RankTime]]) -> list[Apart]:
    # Who came late, or ended early, did something else.
    longest = max(time.wall_ns for _, _, time in ranks)
    ranks = [one for one in ranks if one[2].wall_ns >= _BUSY * longest > 0]
    if len(ranks) <= _LEAST_PEERS:
        return []
    # However many threads are awake at once, none of that time is slept.
    shares = np.array([min(1.0, time.awake_ns / time.wall_ns) for _, _, time in ranks])
    awake = shares[shares >= _LEAST_AWAKE]
    usual = float(np.median(awake)) if awake.size else 0.0
    asleep = shares <= _TENTH * usual
    # Few that are awake now and then say nothing about all the others.
    if not asleep.any() or (awake.size <= asleep.sum() and usual < _BUSY):
        return []
    kind: Literal["waits", "runs"] = "waits"
    if awake.size == 1 and asleep.sum() == len(ranks) - 1:
        kind, asleep, awake = "runs", ~asleep, shares[asleep]
    found = []
    for place in np.flatnonzero(asleep).tolist():
        label, rank, time = ranks[place]
        most = max(time.slept_ns, key=lambda name: time.slept_ns[name], default="")
        why = SLEEPS[most] if kind == "waits" and most else ""
        slept, theirs = 1 - float(shares[place]), 1 - float(np.median(awake))
        found.append(Apart(label, job, rank, kind, slept, theirs, awake.size, len(ranks), why))
    return found


def sentence(one: Apart) -> str:
    """Say what a rank does and its peers don't; names are quoted, not yet escaped."""
    who, peers = f"rank {one.rank}{_of(one.job)} on {quoted(one.label)}", many(one.peers, "peer")
    if one.kind == "runs":
        return (
            f"{who} runs while its {peers} wait: it slept {percent(one.slept)} of the time, they {percent(one.usual)}"
        )
    return (
        f"{who} waits: it slept {percent(one.slept)} of the time{_why([one])}, its {peers} {percent(one.usual)}; "
        "it hangs, or is a victim"
    )


def summed(found: Sequence[Apart]) -> str:
    """Say of all ranks of the first one's job that do the same what they do."""
    first = found[0]
    alike = [one for one in found if (one.job, one.kind) == (first.job, first.kind)]
    others = len(found) - len(alike)
    more = f" (and {many(others, 'rank')} of other jobs)" if others else ""
    if len(alike) == 1:
        return sentence(first) + more
    numbers = ", ".join(str(one) for one in sorted(one.rank for one in alike)[:_NAMED])
    rest = f" and {len(alike) - _NAMED} more" if len(alike) > _NAMED else ""
    slept = float(np.median([one.slept for one in alike]))
    return (
        f"{len(alike)} of {first.of} ranks{_of(first.job)} wait ({numbers}{rest}): they slept {percent(slept)} of the "
        f"time{_why(alike)}, the other {first.peers} {percent(first.usual)}; they hang, or are victims{more}"
    )


def _of(job: str) -> str:
    return f" of {job}" if job else ""


def _why(alike: Sequence[Apart]) -> str:
    """Return what all of them slept for."""
    reasons = {one.slept_for for one in alike}
    return f" {reason}" if len(reasons) == 1 and (reason := reasons.pop()) else ""
