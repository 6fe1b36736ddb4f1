"""What a gate stands on: recordings of before of different times, and sides of which nothing much is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracer.analysis.names import listed, quoted
from tracer.compare.limits import UNSEEN
from tracer.compare.metrics import METRICS
from tracer.compare.quality import Reservation
from tracer.difference import limits
from tracer.difference.side import Side
from tracer.units import duration, many, percent

__all__ = ["distinct", "lacking", "shared_ns", "times_of"]

_ALL = 0.95  # an interval begins when it is asked, and is read a little later
_PROBES = sorted({metric.table[0] for metric in METRICS.values()})


def distinct(sides: Sequence[Side]) -> list[Side]:
    """Return the sides without those that have most of their time in common with one before them."""
    kept: list[Side] = []
    for side in sides:
        if not any(_in_common(other, side) > limits.MOMENT for other in kept):
            kept.append(side)
    return kept


def times_of(sides: Sequence[Side]) -> list[int]:
    """Return which sides are of one time of their node, as a number for each, from 0 on.

    Those of one time follow each other sooner than the shorter of them lasts, by half: what goes on is the same then.
    """
    found: list[int] = []
    for place, side in enumerate(sides):
        same = {found[other] for other in range(place) if _one_time(sides[other], side)}
        number = min(same, default=max(found, default=-1) + 1)
        found = [number if one in same else one for one in found] + [number]
    numbers = {one: place for place, one in enumerate(dict.fromkeys(found))}
    return [numbers[one] for one in found]


def lacking(befores: Sequence[Side], after: Side) -> Iterator[str]:
    """Yield why a gate can't pass, in sentences' parts that may hold unescaped names."""
    for side in (*befores, after):
        yield from _missing(side)
    recorded: dict[str, list[str]] = {}
    for probe in _PROBES:
        recorded.setdefault(_recorded(befores, after, probe), []).append(probe)
    for where, probes in recorded.items():
        if where:
            yield f"{listed(probes)} {'was' if len(probes) == 1 else 'were'} recorded {where} only"
    if after.cut:
        # What is missing of before hides nothing that is slow after.
        yield f"{quoted(after.name)} was cut off after {duration(after.seconds * 1e9)}: what came then may be slower"
    common = max((_in_common(one, after) for one in befores), default=0.0)
    if common > UNSEEN:
        share = f"{percent(common)} of" if common < _ALL else "all of"
        yield f"{share} the shorter side is in the other, too: these are the same intervals"


def shared_ns(one: Side, other: Side) -> float:
    """Return how long two sides have in common; negative is how long is between them, -inf where they can't share."""
    ours, theirs = one.node, other.node
    if (ours.source.host, ours.source.boot_id) != (theirs.source.host, theirs.source.boot_id):
        return float("-inf")
    shared = [min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns)]
    if ours.clocked and theirs.clocked:
        # Copies of a virtual machine have one boot, and each its own time.
        shared.append(min(ours.end_ns, theirs.end_ns) - max(ours.start_ns, theirs.start_ns))
    return float(min(shared))


def _in_common(one: Side, other: Side) -> float:
    return shared_ns(one, other) / max(1, _shorter(one, other))


def _one_time(one: Side, other: Side) -> bool:
    return shared_ns(one, other) > -limits.MOMENT * _shorter(one, other)


def _shorter(one: Side, other: Side) -> int:
    return min(one.end_ns - one.start_ns, other.end_ns - other.start_ns)


def _recorded(befores: Sequence[Side], after: Side, probe: str) -> str:
    """Return where alone a probe was recorded; "" if everywhere or nowhere."""
    before = [one.summary.seen(probe) for one in befores]
    if not after.summary.seen(probe):
        return "before" if any(before) else ""
    return "" if all(before) else "in some of before and after" if any(before) else "after"


def _missing(side: Side) -> Iterator[str]:
    name = quoted(side.name)
    windows = int((side.node.seen_ns > 0).sum())
    if windows < limits.BLOCKS:
        yield f"there {'are' if windows > 1 else 'is'} only {many(windows, 'window')} of {name}"
    for probe, share in side.node.losses.items():
        if share > UNSEEN:
            yield Reservation(side.name, probe, share).sentence
    paused_ns = sum(gap_ns for _, gap_ns in side.gaps)
    if paused_ns > UNSEEN * (side.end_ns - side.start_ns):
        yield f"{name} has nothing of {duration(paused_ns)}"
    if side.damaged:
        yield f"{name} is damaged"
