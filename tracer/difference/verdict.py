"""The difference in one sentence, and how its numbers are told. Names in it are quoted, not yet escaped."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.compare.verdict import amount
from tracer.difference import limits
from tracer.difference.changes import Change
from tracer.difference.difference import Difference
from tracer.difference.grounds import times_of
from tracer.difference.side import Side, Span
from tracer.difference.stretch import Stretch
from tracer.difference.whose import Party, told
from tracer.units import MISSING, change, duration, many, moment, percent, relative

__all__ = ["by", "doubt", "failure", "headline", "interval", "measured", "signed", "then", "when", "who"]

_WHO = 3
_WHY = 3
_STRETCHES = 3
_SPANS = 3
_CLEARLY, _MATTERS = 2, 0.1
_GREAT = 0.1  # seconds a second


def headline(found: Difference) -> str:
    """Return the verdict: what is slower, or that nothing is."""
    parts = []
    if found.slower:
        parts.append(_most(found.slower, "slower"))
        if found.stretches:
            parts += _each(found, [_most_of(one, found) for one in found.stretches])
        elif all(one.doubtful for one in found.slower):
            parts.append("another time of the same may be as far off")
    elif found.stretches:
        (first, *others) = found.stretches
        parts.append(f"only {when(found, first)}: {_most(first.slower, 'slower')}")
        parts += _each(found, [first.slower[0], *(one.slower[0] for one in others)])[1:]
    elif found.faster:
        parts.append(f"nothing is slower; {_most(found.faster, 'faster')}")
    else:
        parts.append("nothing is slower or faster" if found.load else "no change")
        parts[0] += " beyond the noise of the windows"
    if found.faster and (found.slower or found.stretches):
        parts.append(f"{_things(found.faster)} faster")
    if found.load and not found.slower:
        parts.append(f"there is {'more' if found.load[0].step > 0 else 'less'} to do: {measured(found.load[0])}")
    return "; ".join(parts)


def _each(found: Difference, slower: Sequence[Change]) -> list[str]:
    """Return what is slower in each stretch, and when that is; of many the rest as a number."""
    told = [f"{when(found, one)}: {measured(change)}" for one, change in zip(found.stretches, slower, strict=True)]
    return [*told[:_STRETCHES], *([f"and {len(told) - _STRETCHES} more"] if len(told) > _STRETCHES else [])]


def _most_of(stretch: Stretch, found: Difference) -> Change:
    """Return what is told of a stretch beside what is slower in the whole."""
    return (stretch.slower_by(found.limit or 0) or stretch.slower)[0]


def measured(one: Change) -> str:
    """Return a change as a sentence's part: ``NET_RX softirq delay p99 0.2 ms before, 9.1 ms after (×45.5, …)``."""
    unit = one.measure.unit
    before, after = amount(one.before, unit), amount(one.after, unit)
    sure = interval(one)
    return f"{one.measure.title} {before} before, {after} after ({by(one)}{f', {sure}' if sure != MISSING else ''})"


def by(one: Change) -> str:
    """Return how much it changed: ``+23 %``, ``×45``, ``÷28``; ``new`` of what was not there."""
    return change(one.before, one.after)


def interval(one: Change) -> str:
    """Return between what the change lies: ``+12 to +35 %``."""
    if not one.before:
        return MISSING
    ratios = (value / one.before for value in (one.low, one.high))
    low, high = (relative(ratio, beside=one.after / one.before).replace("=", "0 %") for ratio in ratios)
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
    slower = found.slower or found.stretches
    parties = then(found)
    likely = [one for one in parties if _is_somebody(one) and (one.change > 0 or not slower)]
    if not (slower or found.faster):
        likely = [one for one in likely if abs(one.change) >= _GREAT]
    most = max((abs(one.change) for one in likely), default=0)
    named = [one for one in likely if abs(one.change) >= _MATTERS * most]
    return [f"{told(one)}." for one in sorted(named, key=lambda one: (not one.judged, -abs(one.change)))[:_WHO]]


def then(found: Difference) -> Sequence[Party]:
    """Return who had the time: of stretches, in all of them, those with the greatest change in one."""
    if found.slower or not any(one.parties for one in found.stretches):
        return found.parties
    every = sorted((who for one in found.stretches for who in one.parties or ()), key=lambda who: -abs(who.change))
    return list({(who.kind, who.name): who for who in reversed(every)}.values())


def failure(found: Difference) -> str:
    """Return what is slower than the limit allows, in a sentence."""
    rest = f"; so {_are(len(found.failing) - 1)} more" if len(found.failing) > 1 else ""
    stretch = next((one for one in found.stretches if found.failing[0] in one.slower_by(found.limit or 1)), None)
    where = f" {when(found, stretch)}" if stretch else ""
    return f"slower by more than {percent((found.limit or 1) - 1)}{where}: {measured(found.failing[0])}{rest}."


def doubt(found: Difference) -> str:
    """Return why a gate can't tell, in a sentence that may hold unescaped names."""
    why = [*found.lacking[:_WHY]]
    if len(found.lacking) > _WHY:
        why[-1] += f", and {len(found.lacking) - _WHY} more are missing"
    if found.doubtful:
        rest = f"; so {_are(len(found.doubtful) - 1)} more" if len(found.doubtful) > 1 else ""
        stretch = next((one for one in found.stretches if found.doubtful[0] in one.slower), None)
        where = f"{when(found, stretch)}: " if stretch else ""
        times = f"{_tells_little(found)} tell whether another time of the same is as far off"
        why = [f"{where}{measured(found.doubtful[0])}{rest}", times, *why]
    return f"not enough to tell: {'; '.join(why)}."


def _tells_little(found: Difference) -> str:
    if len(found.befores) == 1:
        return "one recording before doesn't"
    if len({*times_of(found.befores)}) == 1:
        return "recordings before of one time don't"
    return f"recordings before of less than {duration(limits.LONG_ENOUGH * 1e9)} don't"


def when(found: Difference, stretch: Stretch) -> str:
    """Return when a stretch of ``after`` is slower: ``for 75 s of after, from 14:02:11 UTC (5 min in)``; where it has
    gaps ``from 14:02:11 to 14:02:30 UTC (62 s in), and again from …``."""
    first, *others = (_span(found.after, one, until=len(stretch.spans) > 1) for one in stretch.spans)
    times = [first, *(f"again {one}" for one in others[: _SPANS - 1])]
    if len(others) >= _SPANS:
        times.append(many(len(others) + 1 - _SPANS, "more time"))
    if len(times) > 1:
        times[-1] = f"and {times[-1]}"
    return f"for {duration(stretch.seconds * 1e9)} of after, {', '.join(times)}"


def _span(side: Side, span: Span, *, until: bool) -> str:
    """Return from when on a span of a side is, or from when ``until`` when."""
    times = [side.node.source.unix_ns(round(ns)) for ns in side.clock_ns(span)][: 1 + until]
    into = f"{duration(span[0] * 1e9)} in" if span[0] else "its beginning"
    if any(one != one for one in times):
        return f"from {' to '.join([into, *(f'{duration(one * 1e9)} in' for one in span[1 : 1 + until])])}"
    clock = " to ".join(moment(one, date=False).removesuffix(" UTC") for one in times)
    return f"from {clock} UTC ({into})"


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
