"""The difference in one sentence, and how its numbers are told. Names in it are quoted, not yet escaped."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.compare.verdict import amount
from tracer.difference.changes import Change
from tracer.difference.difference import Difference
from tracer.difference.whose import Party, told
from tracer.units import MISSING, duration, percent

__all__ = ["by", "failure", "headline", "interval", "measured", "signed", "who"]

#: Of a change that is greater than this its factor is told.
_FACTOR = 9.5
_GREATEST = 999
_WHO = 3
_CLEARLY, _MATTERS = 2, 0.1
_GREAT = 0.1  # seconds a second


def headline(found: Difference) -> str:
    """Return the verdict: what is slower, or that nothing is."""
    parts = []
    if found.slower:
        parts.append(_most(found.slower, "slower"))
        if found.faster:
            parts.append(f"{_things(found.faster)} faster")
    elif found.late:
        parts.append(
            f"in the last {duration(found.late.seconds * 1e9)} of after only, {_most(found.late.slower, 'slower')}"
        )
    elif found.faster:
        parts.append(f"nothing is slower; {_most(found.faster, 'faster')}")
    else:
        parts.append("nothing is slower or faster" if found.load else "no change")
        parts[0] += " beyond the noise of the windows"
    if found.load and not found.slower:
        parts.append(f"there is {'more' if found.load[0].step > 0 else 'less'} to do: {measured(found.load[0])}")
    return "; ".join(parts)


def measured(one: Change) -> str:
    """Return a change as a sentence's part: ``NET_RX softirq delay p99 0.2 ms before, 9.1 ms after (+4450 %, …)``."""
    unit = one.measure.unit
    before, after = amount(one.before, unit), amount(one.after, unit)
    sure = interval(one)
    return f"{one.measure.title} {before} before, {after} after ({by(one)}{f', {sure}' if sure != MISSING else ''})"


def by(one: Change) -> str:
    """Return how much it changed: ``+23 %``, ``×45``; ``new`` of what was not there."""
    if not one.before:
        return "new" if one.after else "±0 %"
    return _relative(one.after / one.before, as_factor=_is_great(one))


def interval(one: Change) -> str:
    """Return between what the change lies: ``+12 to +35 %``."""
    if not one.before:
        return MISSING
    low, high = (_relative(value / one.before, as_factor=_is_great(one)) for value in (one.low, one.high))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def signed(seconds: float) -> str:
    """Return seconds a second as time of each second, with its sign."""
    if seconds != seconds:
        return MISSING
    return f"{'+' if seconds >= 0 else '-'}{duration(abs(seconds) * 1e9)}"


def who(found: Difference) -> list[str]:
    """Return who had more or less time, in sentences: those with the greatest changes.

    Of what changed beyond the noise; else only who took a tenth of a CPU, which may be what others do by turns.
    """
    # Whoever took less is no reason for what became slower.
    slower = found.slower or found.late
    likely = [one for one in found.parties if _is_somebody(one) and (one.change > 0 or not slower)]
    if not (slower or found.faster):
        likely = [one for one in likely if abs(one.change) >= _GREAT]
    most = max((abs(one.change) for one in likely), default=0)
    named = [one for one in likely if abs(one.change) >= _MATTERS * most]
    return [f"{told(one)}." for one in sorted(named, key=lambda one: (not one.judged, -abs(one.change)))[:_WHO]]


def failure(found: Difference) -> str:
    """Return what is slower than the limit allows, in a sentence."""
    rest = f"; so {_are(len(found.failing) - 1)} more" if len(found.failing) > 1 else ""
    where = "" if found.slower or not found.late else f" in the last {duration(found.late.seconds * 1e9)}"
    return f"slower by more than {percent((found.limit or 1) - 1)}{where}: {measured(found.failing[0])}{rest}."


def _is_somebody(one: Party) -> bool:
    """Not all tasks together; waits are nobody's doing; and who holds CPUs for a moment more or less is chance."""
    clearly = max(one.before, one.after) >= _CLEARLY * min(one.before, one.after)
    return one.judged or (one.kind == "held" and clearly)


def _most(changes: Sequence[Change], how: str) -> str:
    if len(changes) == 1:
        return f"{how} beyond the noise: {measured(changes[0])}"
    return f"{len(changes)} things are {how} beyond the noise, most of all {measured(changes[0])}"


def _things(changes: Sequence[Change]) -> str:
    return f"{len(changes)} thing{'s' if len(changes) > 1 else ''} {'are' if len(changes) > 1 else 'is'}"


def _are(number: int) -> str:
    return f"{'are' if number > 1 else 'is'} {number}"


def _is_great(one: Change) -> bool:
    return one.after > _FACTOR * one.before


def _relative(ratio: float, *, as_factor: bool) -> str:
    if as_factor:
        return f"×{ratio:.3g}" if ratio < _GREATEST else f">×{_GREATEST}"
    return f"{'+' if ratio >= 1 else '-'}{percent(abs(ratio - 1))}"
