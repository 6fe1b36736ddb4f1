"""Ranks of one job beside each other: who sleeps while its peers run, since when, and for whom they all wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tracer.analysis.sleeps import SLEEPS
from tracer.compare import stretches
from tracer.compare.alignment import Grid
from tracer.compare.node import Node, RankTime

__all__ = ["Apart", "apart"]

_HALF = 0.5
#: Sleep is seen from so much of the time on.
_SEEN = 0.1
#: It takes so many seconds to be told since when. More where it may be a start, I/O, or an end: of a rank that was
#: begun that recently, as long as it has lived until then; of one that sleeps for files, or that others wait for;
#: where no sleep was seen, for it may be gone; and where nobody of the job is there any more.
_LEAST_S, _LONG_S, _YOUNG_S = 10.0, 60.0, 300.0
_FILES = tuple(SLEEPS[name] for name in ("disk_ns", "file_ns"))

Kind = Literal["waits", "runs"]


@dataclass(frozen=True)
class Apart:
    """A rank that does otherwise than ``peers``, other ranks of its job on any node; the job has ``of``.

    ``waits``: it sleeps while they don't; ``runs``: they sleep while it doesn't. ``slept`` and ``usual`` are shares of
    the time, its own and the median of theirs, and ``slept_for`` is what it slept for most, in words; "" where it does
    not show. All that is from ``since_ns`` (UTC; NaN where it is not known) to the end of the recording; ``before`` is
    the share until then, NaN where it is so from the start. ``worked`` is the CPU time it had used until it was found,
    as a share of its life: what it did before the recording; NaN where that is not known.
    """

    label: str
    job: str
    rank: int
    kind: Kind
    slept: float
    usual: float
    peers: int
    of: int
    slept_for: str
    since_ns: float = float("nan")
    before: float = float("nan")
    worked: float = float("nan")

    @property
    def lasting(self) -> bool:
        """Whether it is so from the start of the recording."""
        return self.before != self.before


@dataclass(frozen=True)
class _Job:
    """All ranks of one, by place; ``wall`` and ``awake`` are ns, shape ``(ranks, windows)``."""

    name: str
    grid: Grid
    ranks: list[tuple[Node, str, int, RankTime]]
    wall: np.ndarray
    awake: np.ndarray

    def shares(self, windows: slice, by_window: bool = False) -> np.ndarray:
        """Return which part of the time each was awake; however many threads were at once, none of that is slept."""
        awake, wall = self.awake[:, windows], self.wall[:, windows]
        if not by_window:
            awake, wall = awake.sum(axis=1), wall.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(wall > 0, np.minimum(1.0, awake / wall), np.nan))

    @property
    def length_s(self) -> float:
        """Return how long a window is."""
        return self.grid.length_ns / 1e9

    @property
    def over(self) -> bool:
        """Return whether nobody of it is there any more at the end."""
        return not self.wall[:, -stretches.LEAST_WINDOWS :].any()

    def slept_ns(self, place: int, begin: int) -> Mapping[str, float]:
        """Return what a rank slept for since a window, by column of ``ledger.time``."""
        node, _, _, time = self.ranks[place]
        sums = {}
        for name, values in time.slept_ns.items():
            laid = np.zeros(self.grid.windows)
            self.grid.lay(laid, node, values)
            sums[name] = float(laid[begin:].sum())
        return sums

    def onset_ns(self, place: int, begin: int) -> float:
        """Return when a rank fell asleep that sleeps from a window on: in the one before, by how much it was awake."""
        earlier = self.shares(slice(0, begin - 1))[place]
        last = self.shares(slice(begin - 1, begin))[place]
        awake = float(np.clip(np.nan_to_num(last / earlier, nan=1.0), 0, 1)) if earlier else 1.0
        return self.grid.own_ns(self.ranks[place][0], begin) - (1 - awake) * self.grid.length_ns


def apart(grid: Grid, labels: Sequence[str]) -> tuple[Apart, ...]:
    """Return the ranks that do otherwise than their peers, by job, those that have done so longest first."""
    jobs: dict[str, dict[tuple[str, str, int], tuple[Node, str, int, RankTime]]] = {}
    for node, label in zip(grid.nodes, labels, strict=True):
        for (job, rank), time in node.ranks.items():
            # Two recordings of one node tell of the same ranks.
            ranks, key = jobs.setdefault(job, {}), (node.source.host, node.source.boot_id, rank)
            if key not in ranks or ranks[key][3].wall_ns.sum() < time.wall_ns.sum():
                ranks[key] = (node, label, rank, time)
    found = [
        one
        for name, ranks in jobs.items()
        if len(ranks) > stretches.LEAST_PEERS
        for one in _of_job(_laid(name, grid, [*ranks.values()]))
    ]
    return tuple(sorted(found, key=_order))


def _order(one: Apart) -> tuple[object, ...]:
    return one.kind, one.job, not one.lasting, float(np.nan_to_num(one.since_ns)), -one.slept, one.rank


def _laid(name: str, grid: Grid, ranks: list[tuple[Node, str, int, RankTime]]) -> _Job:
    wall, awake = np.zeros((2, len(ranks), grid.windows))
    for place, (node, _, _, time) in enumerate(ranks):
        grid.lay(wall[place], node, time.wall_ns)
        grid.lay(awake[place], node, time.awake_ns)
    if grid.by_start:
        # No window of one is another's: only the whole of it can be compared.
        wall, awake = wall.sum(axis=1, keepdims=True), awake.sum(axis=1, keepdims=True)
    # Who was there for a part of it only did something else in it.
    awake[wall < _HALF * wall.max(axis=0)] = wall[wall < _HALF * wall.max(axis=0)] = 0
    return _Job(name, grid, ranks, wall, awake)


def _of_job(job: _Job) -> Iterator[Apart]:
    waits, runs = stretches.flags(job.shares(slice(None), by_window=True))
    kinds: tuple[tuple[Kind, np.ndarray], ...] = (("waits", waits), ("runs", runs))
    for kind, flagged in kinds:
        found = stretches.last(flagged)
        for place in np.flatnonzero(found.begin >= 0).tolist():
            begin = 0 if found.early[place] else int(found.begin[place])
            one = _told(job, place, kind, begin, found.begin >= 0)
            if one and (one.lasting or found.windows[place] * job.length_s >= _needed_s(job, place, one, begin)):
                yield one


def _told(job: _Job, place: int, kind: Kind, begin: int, alike: np.ndarray) -> Apart | None:
    """Return what a rank has done since window ``begin``; None where that is not otherwise than its peers."""
    node, label, rank, time = job.ranks[place]
    shares = job.shares(slice(begin, None))
    known = ~np.isnan(shares)
    found = stretches.asleep(shares[known])
    if found is None:
        return None
    sleeping = np.zeros(len(shares), bool)
    sleeping[known] = found
    peers = known & (sleeping if kind == "runs" else stretches.at_work(shares) & ~alike)
    if sleeping[place] != (kind == "waits") or not peers.any():
        return None
    slept = job.slept_ns(place, begin) if kind == "waits" else {}
    # Of the first window a part is of what came before.
    slept = {name: ns for name, ns in slept.items() if ns >= _SEEN * job.wall[place, begin:].sum()}
    most = max(slept, key=lambda name: slept[name], default="")
    one = Apart(
        label=label,
        job=job.name,
        rank=rank,
        kind=kind,
        slept=1 - float(shares[place]),
        usual=1 - float(np.median(shares[peers])),
        peers=int(peers.sum()),
        of=len(job.ranks),
        slept_for=SLEEPS[most] if most else "",
        worked=time.worked,
    )
    if not begin:
        return one
    # The window before is mostly of both.
    earlier = job.shares(slice(0, begin - 1))
    before = earlier[place] if kind == "waits" else np.nanmedian(earlier[peers])
    since_ns = job.onset_ns(place, begin) if kind == "waits" else job.grid.own_ns(node, begin)
    return replace(one, before=1 - float(before), since_ns=float(since_ns) if node.clocked else float("nan"))


def _needed_s(job: _Job, place: int, one: Apart, begin: int) -> float:
    """Return for how long a rank has to do so: longer where it may be a start, I/O or an end."""
    node, _, _, time = job.ranks[place]
    age_s = (job.grid.own_ns(node, begin) - node.source.unix_ns(time.began_ns)) / 1e9
    if node.clocked and time.began_ns and age_s < _YOUNG_S:
        return max(_LONG_S, age_s)
    return _LONG_S if one.kind == "runs" or one.slept_for in ("", *_FILES) or job.over else _LEAST_S
