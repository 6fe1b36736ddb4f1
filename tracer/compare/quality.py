"""What was not seen of nodes of which nobody deviates: where much is missing, that is no clean bill of health."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import basename
from typing import Literal

import numpy as np

from tracer.analysis.names import quoted
from tracer.compare import limits
from tracer.compare.alignment import Grid
from tracer.units import many, percent

__all__ = ["Reservation", "reservations", "sentence"]

_NAMED = 2
# A probe that so many of the nodes recorded is missed on the others.
_USUAL = 0.5


@dataclass(frozen=True)
class Reservation:
    """A ``share`` of what was to be compared of a node that is missing.

    ``kind``: ``events`` that ``probe`` lost; ``probe``: of the intervals, those without it; ``gaps``: windows amid the
    recording; ``time``: windows before it began and after it ended; ``recording``: all of the file that ``label`` is.
    ``probe`` is "" where it is about none.
    """

    label: str
    probe: str
    share: float
    kind: Literal["events", "probe", "gaps", "time", "recording"] = "events"

    @property
    def sentence(self) -> str:
        """The same in words: ``84 % of cu07's runqueue events were lost``."""
        who, share = quoted(self.label), percent(self.share)
        whose = f"{who}'{'' if who.endswith('s') else 's'}"
        match self.kind:
            case "events":
                return f"{share} of {whose} {self.probe} events were lost"
            case "probe":
                return f"{self.probe} was not recorded on {who}{f' {share} of the time' if self.share < 1 else ''}"
            case "gaps":
                return f"{share} of {whose} windows were not recorded"
            case "time":
                return f"{whose} recording is of {percent(1 - self.share)} of the time only"
            case "recording":
                return f"{who} was not compared"


def reservations(grid: Grid, labels: Sequence[str], uncompared: Sequence[str] = ()) -> tuple[Reservation, ...]:
    """Return where so much is missing that a deviation of the least size could be in it, most first.

    ``uncompared`` are recordings of nodes that nothing was compared of.
    """
    found = [
        Reservation(label, probe, share)
        for node, label in zip(grid.nodes, labels, strict=True)
        for probe, share in node.losses.items()
    ]
    found += [*_windows(grid, labels), *_probes(grid, labels)]
    missing = [one for one in found if one.share > limits.UNSEEN]
    files = [Reservation(basename(path), "", 1.0, "recording") for path in uncompared]
    return (*files, *sorted(missing, key=lambda one: (-one.share, one.label, one.probe)))


def _windows(grid: Grid, labels: Sequence[str]) -> Iterator[Reservation]:
    # The first and the last window are mostly parts.
    for label, recorded in zip(labels, grid.recorded[:, 1:-1], strict=True):
        known = np.flatnonzero(recorded)
        if recorded.size:
            gaps = known[-1] + 1 - known[0] - known.size if known.size else 0
            missing = recorded.size - known.size
            yield Reservation(label, "", missing / recorded.size, "gaps" if 2 * gaps >= missing else "time")


def _probes(grid: Grid, labels: Sequence[str]) -> Iterator[Reservation]:
    for probe in sorted({probe for node in grid.nodes for probe in node.told}):
        shares = [node.told.get(probe, 0.0) for node in grid.nodes]
        if sum(share > 0 for share in shares) >= _USUAL * len(shares):
            for label, share in zip(labels, shares, strict=True):
                yield Reservation(label, probe, 1 - share, "probe")


def sentence(found: Sequence[Reservation]) -> str:
    """Return them as a sentence's part; the rest is counted."""
    files = [quoted(one.label) for one in found if one.kind == "recording"]
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    verb = "was" if len(files) == 1 else "were"
    said = [f"{(', ' if more else ' and ').join(files[:_NAMED])}{more} {verb} not compared"] if files else []
    rest = [one for one in found if one.kind != "recording"]
    named = {one.label for one in rest[:_NAMED]}
    others = len({one.label for one in rest} - named)
    counted = f", and much of {many(others, 'other node')} is missing" if others else ""
    return " and ".join([*said, *(one.sentence for one in rest[:_NAMED])]) + counted
