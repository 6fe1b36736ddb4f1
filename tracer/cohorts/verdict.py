"""The comparison of cohorts in one sentence, and how its numbers are told. Names in it are quoted, not yet escaped."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.analysis.names import quoted
from tracer.cohorts.rollout import Effect, Rollout
from tracer.compare import limits
from tracer.units import clip, many, percent

__all__ = ["by_how_much", "days", "headline", "named", "too_little"]

_NAMED = 3
_LONGEST = 40


def headline(rollout: Rollout) -> str:
    """Return the verdict."""
    key, reference = rollout.key.name, named(rollout.reference.value)
    told: dict[str, list[Effect]] = {}
    for one in rollout.told:
        told.setdefault(one.cohort, []).append(one)
    if not told:
        return f"{key}: no cohort differs from {reference} beyond the noise{_at_most(rollout.effects)}"
    parts = [_differs(named(cohort), reference, effects) for cohort, effects in [*told.items()][:_NAMED]]
    rest = f"; and {many(len(told) - _NAMED, 'more cohort')}" if len(told) > _NAMED else ""
    return f"{key} {'; '.join(parts)}{rest}"


def named(value: str) -> str:
    """Return a cohort's name for a sentence."""
    return quoted(clip(value, _LONGEST))


def by_how_much(effect: Effect) -> str:
    """Return a change with its interval: ``2.1 % ± 0.4 % more``."""
    decimals = next((digits for digits in range(3) if effect.half * 100 >= 2 * 10**-digits), 2)
    change, half = (f"{abs(number) * 100:.{decimals}f} %" for number in (effect.change, effect.half))
    return f"{change} ± {half} {'more' if effect.change > 0 else 'less'}"


def days(effect: Effect) -> str:
    """Return what a change costs, or saves, in node-days a week of 1,000 nodes; "" of what is not time of a node."""
    number = abs(effect.node_days[0])
    return f"{number:.2g}" if number < 10 else f"{number:.0f}" if number == number else ""


def too_little(rollout: Rollout) -> tuple[str, str] | None:
    """Return why cohorts can't be compared, and what would help; None when they can."""
    key, small = rollout.key.name, rollout.small
    if rollout.others and rollout.effects:
        return None
    if not rollout.reference.units and not small:
        return f"--by {key}: it is not known of any node that can be compared.", "record --label NAME=VALUE says it"
    if len(small) + bool(rollout.reference.units) < 2:
        only = rollout.reference if rollout.reference.units else small[0]
        return (
            f"--by {key}: there is one cohort only, {named(only.value)} ({many(len(only.units), 'node')}).",
            "name the recordings of the other one, too",
        )
    if rollout.others:
        return (
            f"--by {key}: nothing was measured on enough nodes of both cohorts.",
            "record longer, with the same probes",
        )
    sizes = [one for one in (rollout.reference, *small) if one.units]
    told = ", ".join(f"{named(one.value)} ({many(len(one.units), 'node')})" for one in sizes[:_NAMED])
    return (
        f"--by {key}: too few nodes to tell cohorts from chance: {told}{', …' if len(sizes) > _NAMED else ''}.",
        f"two cohorts of {limits.FEWEST_IN_COHORT} nodes at least; recordings of one host are one node",
    )


def _differs(cohort: str, reference: str, effects: Sequence[Effect]) -> str:
    slower = [one for one in effects if one.change > 0]
    faster = [one for one in effects if one.change < 0]
    word = "slower than" if not faster else "faster than" if not slower else "slower in some and faster in other than"
    said = [_told(one) for one in [*slower, *faster][:_NAMED]]
    rest = f" and {len(effects) - _NAMED} more" if len(effects) > _NAMED else ""
    return f"{cohort} is {word} {reference}: {', '.join(said)}{rest}"


def _told(effect: Effect) -> str:
    cost = f" ({days(effect)} node-days a week on 1,000 nodes)" if days(effect) else ""
    return f"{effect.quantity.title} {by_how_much(effect)}{cost}"


def _at_most(effects: Sequence[Effect]) -> str:
    """Say how great a difference in what was measured best can be all the same."""
    known = [one for one in effects if one.quantity.judges]
    if not known:
        return ""
    best = min(known, key=lambda one: (not one.quantity.is_node_time, one.half))
    return f": {best.quantity.title} by {percent(max(abs(best.low), abs(best.high)))} at most"
