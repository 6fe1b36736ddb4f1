"""What the deviations of one node together would be explained by."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, log2

from tracer.compare.metrics import METRICS, Cause
from tracer.compare.telling import Told

__all__ = ["besides_idling", "cost", "is_unfelt", "is_victim", "likely_cause", "ordered"]

# Handlers of different kinds that all became slower by about the same factor: the CPU did.
_RUNS = ("softirq.run", "hardirq.run")
_KINDS = 3
_ALIKE = 0.2  # octaves around their mean
# Interrupts and softirqs hold up everything else: where they lost so much of what was lost, the rest follows.
_SHARE = 0.3
_HOLDING_UP: tuple[tuple[Cause, str], ...] = (("interrupts", "hardirq.run"), ("softirq", "softirq.run"))
# A late softirq beside tasks that wait: something held the CPU against both.
# What takes a CPU from tasks, the ranks' own accounts have as well, where there are any.
_FELT = ("runqueue.wait", "softirq.run", "hardirq.run", "cpustate.softirq", "cpustate.hardirq", "memory.stall")
_LITTLE = 0.005
# On a CPU that is idle for so much of the time what comes takes longer, interrupts up to so many times: it has to wake
# up, and its caches are cold.
_IDLE, _COLD = 0.5, 4.0
_INTERRUPTING = ("softirq.delay", "softirq.run", "hardirq.run")
_WAKING = (*_INTERRUPTING, "runqueue.wait", "workqueue.delay")
_BY_WEIGHT: tuple[Cause, ...] = ("memory", "scheduler", "storage", "softirq", "interrupts")


def is_victim(deviations: Sequence[Told]) -> bool:
    """Return whether a node only waits for others: nothing on it takes longer."""
    return all(METRICS[one.series.metric].role == "victim" for one in deviations)


def besides_idling(deviations: Sequence[Told]) -> list[Told]:
    """Return the deviations without those that follow from the node's having less to do, where it has.

    Of few nodes one may work while the others don't; what takes longer on an idle CPU holds up nobody.
    """
    if not any(METRICS[one.series.metric].role == "victim" and one.value >= _IDLE for one in deviations):
        return [*deviations]
    return [one for one in deviations if not _is_of_waking(one)]


def is_unfelt(deviations: Sequence[Told]) -> bool:
    """Return whether ranks, whose own accounts show nothing, don't feel what deviates on their node.

    Nobody waits longer than all that came late did together.
    """
    return all(one.series.metric in _FELT or one.deviation.lost < _LITTLE for one in deviations)


def cost(deviations: Sequence[Told]) -> float:
    """Return how much time the dearest of them costs: a share of the ranks' time, or else seconds per second."""
    return max(map(_lost, deviations), default=0.0)


def ordered(deviations: Sequence[Told]) -> list[Told]:
    """Return the deviations, what tells most of the cause first: culprits before symptoms, by the time they cost.

    Before all others what the ranks themselves lost: it is why their job is slow.
    """
    roles = ("culprit", "symptom", "victim")
    return sorted(
        deviations,
        key=lambda one: (
            roles.index(METRICS[one.series.metric].role),
            not _is_of_ranks(one),
            -_lost(one),
            -one.deviation.score,
        ),
    )


def likely_cause(deviations: Sequence[Told]) -> Cause:
    """Return the class of cause that the deviations point to, by what can hold up what."""
    if _all_slower(deviations):
        return "thermal/frequency"
    if ranks := [one for one in deviations if _is_of_ranks(one)]:
        return _of_ranks(ranks)
    lost: dict[Cause, float] = {}
    for one in deviations:
        if METRICS[one.series.metric].role == "culprit":
            lost[one.series.cause] = lost.get(one.series.cause, 0.0) + _lost(one)
    most = max(lost.values(), default=0.0)
    for cause, metric in _HOLDING_UP:
        run = sum(_lost(one) for one in deviations if one.series.metric == metric)
        if run and run >= _SHARE * most:
            return cause
    for cause in _BY_WEIGHT:
        if cause in lost:
            return cause
    symptoms = [one.series.cause for one in deviations if METRICS[one.series.metric].role == "symptom"]
    return symptoms[0] if symptoms else "none seen"


def _of_ranks(deviations: Sequence[Told]) -> Cause:
    lost = {one.series.cause: _lost(one) for one in deviations}
    for cause, _ in _HOLDING_UP:
        if lost.get(cause, 0.0) >= _SHARE * max(lost.values()):
            return cause
    return max(lost, key=lambda cause: lost[cause])


def _all_slower(deviations: Sequence[Told]) -> bool:
    runs = [one for one in deviations if one.series.metric in _RUNS and one.deviation.form == "bulk"]
    octaves = [log2(one.deviation.ratio) for one in runs if isfinite(one.deviation.ratio) and one.deviation.ratio > 0]
    if len(octaves) < _KINDS:
        return False
    mean = sum(octaves) / len(octaves)
    return all(abs(one - mean) <= _ALIKE for one in octaves)


def _is_of_waking(one: Told) -> bool:
    metric, deviation = one.series.metric, one.deviation
    cold = metric in _INTERRUPTING and deviation.ratio < _COLD
    return cold or (metric in _WAKING and deviation.lost < _LITTLE)


def _is_of_ranks(one: Told) -> bool:
    return METRICS[one.series.metric].of_ranks


def _lost(one: Told) -> float:
    if _is_of_ranks(one):
        return one.value - one.median
    return one.deviation.lost if isfinite(one.deviation.lost) else 0.0
