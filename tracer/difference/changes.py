"""What changed from one side to the other beyond the noise, by how much, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log2
from typing import Literal

import numpy as np

from tracer.compare.limits import LEAST_LOST
from tracer.compare.metrics import METRICS, Role, Series
from tracer.compare.node import Node
from tracer.difference.limits import LEAST_TIME
from tracer.difference.measures import Blocks, Measure, Quantity, measured
from tracer.difference.noise import Apart, apart

__all__ = ["Change", "Changes", "Kind", "changes_of", "columns_of"]

#: ``load``: there is more or less to do, and nothing that takes longer or shorter.
Kind = Literal["slower", "faster", "load"]
_ROLES: tuple[Role, ...] = ("culprit", "symptom", "victim")

#: Of quantities that changed about as surely, the first of these is told.
_PREFERRED: tuple[Quantity, ...] = ("p99", "p50", "mean", "time", "rate", "")
_ABOUT = 0.8


@dataclass(frozen=True)
class Change:
    """One measure on both sides.

    Attributes:
        measure: what of which series.
        before, after: in the measure's unit, as a typical block has it (their geometric mean).
        low, high: where ``after`` lies with confidence, given ``before``.
        step: log2 of after over before, with what is too little to matter added to both; ``half`` is its uncertainty;
            ``doubt`` is that with what two times of the same may be apart, where ``half`` doesn't know.
        lost: seconds a second that it costs more than before: of what takes longer, by that alone, as often as it comes
            where it takes longer; of load, in all. NaN of what is no time.
    """

    measure: Measure
    before: float
    after: float
    low: float
    high: float
    step: float
    half: float
    doubt: float
    lost: float

    @property
    def kind(self) -> Kind:
        """What the change would be, if it is one."""
        return "load" if self.measure.is_load else "slower" if self.step > 0 else "faster"

    @property
    def ratio(self) -> float:
        """After over before, as a limit is held against it."""
        return float(2.0**self.step)

    @property
    def surely(self) -> float:
        """The least that it changed, as log2 of a ratio; 0 when that may be nothing."""
        return max(0.0, abs(self.step) - self.half)

    @property
    def doubtful(self) -> bool:
        """Whether another time of the same might be as far off."""
        return abs(self.step) <= self.doubt

    def beyond(self, effect: float) -> bool:
        """Return whether it changed beyond the noise, by a factor ``effect`` or more, and at a cost."""
        # What is no time has its own least amount in the ratio.
        least = LEAST_TIME if self.measure.is_load else LEAST_LOST
        matters = not isfinite(self.lost) or abs(self.lost) >= least
        return self.surely > 0 and abs(self.step) >= log2(effect) and matters


@dataclass(frozen=True)
class Changes:
    """All that was compared. ``rare`` are series of which a side has too little to tell, ``partly`` those that only one
    side recorded."""

    every: tuple[Change, ...]
    rare: tuple[Series, ...]
    partly: tuple[Series, ...]
    memory: float

    def told(self, kind: Kind, effect: float, *, surely: bool = False) -> list[Change]:
        """Return what changed by a factor ``effect`` or more: the most telling change of each series, culprits first,
        then by what it costs or saves. ``surely``: only what no other time of the same explains."""
        found: dict[Series, list[Change]] = {}
        for one in self.every:
            if one.kind == kind and one.beyond(effect) and not (surely and one.doubtful):
                found.setdefault(one.measure.series, []).append(one)
        return sorted(map(_most_telling, found.values()), key=_rank)


def changes_of(befores: Sequence[Node], after: Node, times: Sequence[int] = ()) -> Changes:
    """Compare two sides, the first of one recording or more, in every series that all recorded.

    ``times`` has a number for each of ``befores``: those of one time have the same. Without, each has its own.
    """
    sides = Blocks(befores), Blocks([after])
    partly = tuple(sorted(one for one in sides[0].series | sides[1].series if not _shared(*sides, one)))
    columns = columns_of(*sides)
    if not columns:
        return Changes((), (), partly, 0.0)
    first, second = (np.stack([pair[side] for pair in columns.values()], axis=1) for side in (0, 1))
    of_block = np.repeat(times or range(len(befores)), sides[0].numbers_of_blocks)
    recordings = [first[of_block == time] for time in np.unique(of_block)]
    found = apart(recordings, second, (float(sides[0].seconds.sum()) / len(recordings), float(sides[1].seconds.sum())))
    changes = tuple(
        _change(measure, found, place, _lost(sides, measure))
        for place, measure in enumerate(columns)
        if np.isfinite(found.half[place])
    )
    known = {one.measure.series for one in changes if not one.measure.is_load}
    rare = {measure.series for measure in columns if not measure.is_load} - known
    return Changes(changes, tuple(sorted(rare)), partly, found.memory)


def columns_of(before: Blocks, after: Blocks) -> dict[Measure, tuple[np.ndarray, np.ndarray]]:
    """Return log2 of each measure of what both sides recorded, in each block of both, shapes ``(blocks,)``."""
    columns: dict[Measure, tuple[np.ndarray, np.ndarray]] = {}
    for series in sorted(before.series | after.series):
        if _shared(before, after, series):
            columns |= measured(before, after, series)
    return columns


def _shared(before: Blocks, after: Blocks, series: Series) -> bool:
    return before.recorded(series) and after.recorded(series)


def _change(measure: Measure, found: Apart, place: int, lost: float) -> Change:
    before, after, half, doubt = (
        float(values[place]) for values in (found.before, found.after, found.half, found.doubt)
    )
    step = after - before
    plain = [max(0.0, 2.0**value - measure.least) for value in (before, after, after - half, after + half)]
    return Change(measure, plain[0], plain[1], plain[2], plain[3], step, half, doubt, lost)


def _lost(sides: tuple[Blocks, Blocks], measure: Measure) -> float:
    if METRICS[measure.series.metric].kind != "histogram":
        return float("nan")
    (rate, mean), (new_rate, new_mean) = (one.rate_and_mean(measure.series) for one in sides)
    if measure.is_load:
        return new_rate * new_mean - rate * mean
    # No more than is lost on the side that is slower.
    return (new_rate if new_mean > mean else rate) * (new_mean - mean)


def _most_telling(changes: list[Change]) -> Change:
    surest = max(one.surely for one in changes)
    likely = [one for one in changes if one.surely >= _ABOUT * surest]
    return min(likely, key=lambda one: _PREFERRED.index(one.measure.quantity))


def _rank(one: Change) -> tuple[int, float, float]:
    role = METRICS[one.measure.series.metric].role
    return _ROLES.index(role), -abs(one.lost) if isfinite(one.lost) else 0.0, -one.surely
