"""What each rank of one recording did, added up by time of day."""

from __future__ import annotations

import numpy as np

from tracer.analysis.jobs import Jobs
from tracer.analysis.rows import numbers
from tracer.analysis.sleeps import SLEEPS
from tracer.compare.buckets import Buckets
from tracer.compare.node import RankTime
from tracer.units import SECOND

__all__ = ["Roll"]

_MOST_RANKS = 1024
#: Who has no row did less than all of those that are told together: so much of the time is little.
_TENTH = 0.1
#: Running, or being kept from it.
_AWAKE = ("running_ns", "waiting_ns", "throttled_ns", "softirq_ns", "hardirq_ns", "reclaim_ns", "compaction_ns")
_COLUMNS = (*_AWAKE, *SLEEPS)
_OTHERS = 0
#: A rank that has been there for less has only started.
_LEAST_AGE_NS = 60 * SECOND


class Roll:
    """Adds up in ``buckets`` what each rank did. ``whole``: all processes of the node were traced."""

    def __init__(self, jobs: Jobs, buckets: Buckets, *, whole: bool) -> None:
        self._jobs, self._buckets, self._whole = jobs, buckets, whole
        self._ranks: list[tuple[str, int]] = []
        self._places: dict[int, int] = {}
        self._began_ns: dict[tuple[str, int], int] = {}
        # CPU time by process, and until when that was: as of when each was found.
        self._used: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
        self.learn()

    def learn(self) -> None:
        """Look again who is there: the recording has told of members."""
        there: dict[tuple[str, int], list[int]] = {}
        for one in self._jobs.members():
            rank = (one.party.title, one.rank)
            if one.rank >= 0 and not one.ended and (rank in there or len(there) < _MOST_RANKS):
                there.setdefault(rank, []).append(one.pid)
                self._used.setdefault(rank, {}).setdefault(one.pid, (one.used_ns, one.seen_ns))
                # The oldest comes first.
                self._began_ns.setdefault(rank, one.began_ns)
        self._ranks = list(there)
        self._places = {pid: place for place, pids in enumerate(there.values()) for pid in pids}

    def add(self, rows: np.ndarray, bucket: int, length_ns: int) -> None:
        """Add ``ledger.time`` of one interval: who is there and has no row has slept all the time."""
        if not self._ranks:
            return
        columns = np.stack([numbers(rows, name).astype(np.float64) for name in _COLUMNS], axis=1)
        pids = numbers(rows, "pid").tolist()
        places = np.array([self._places.get(int(pid), -1) for pid in pids], int)
        sums = np.zeros((len(self._ranks), 1 + len(_COLUMNS)))
        np.add.at(sums[:, 1:], places[places >= 0], columns[places >= 0])
        sums[:, 0] = length_ns
        # Processes with little time are told together: who is among them did less than all of those.
        others = columns[[pid == _OTHERS for pid in pids], : len(_AWAKE)].sum()
        told = set(places.tolist()) if others > _TENTH * length_ns or not self._whole else range(len(self._ranks))
        for place in told:
            if place >= 0 and (self._ranks[place] in self._buckets.ranks or len(self._buckets.ranks) < _MOST_RANKS):
                self._buckets.add_rank(self._ranks[place], bucket, sums[place])

    def called(self) -> dict[tuple[str, int], RankTime]:
        """Return what was added up, by job and rank."""
        used = slice(0, self._buckets.used)
        found = {}
        for rank, sums in self._buckets.ranks.items():
            # Of a day in ns to the nearest 8 ms, in half of the memory.
            wall, *rest = sums[used].T.astype(np.float32)
            slept = zip(SLEEPS, rest[len(_AWAKE) :], strict=True)
            awake = np.sum(rest[: len(_AWAKE)], axis=0)
            kinds = {name: ns for name, ns in slept if ns.any()}
            found[rank] = RankTime(wall, awake, kinds, self._began_ns[rank], self._worked(rank))
        return found

    def _worked(self, rank: tuple[str, int]) -> float:
        used, seen = zip(*self._used[rank].values(), strict=True)
        age_ns = min(seen) - self._began_ns[rank]
        # Older recordings have no such number, and what just began has only started.
        return sum(used) / age_ns if min(used) >= 0 and age_ns >= _LEAST_AGE_NS else float("nan")
