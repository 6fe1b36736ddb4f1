"""What ranks do otherwise than their peers, in words. Names are quoted, not yet escaped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer.analysis.names import quoted
from tracer.compare.ranks import Apart
from tracer.units import many, moment, percent

__all__ = ["sentence", "summed"]

_NAMED = 8
# CPU time as a share of its life: a rank that has used so much did work, and one that hardly used any never did.
_WORKED, _NEVER = 0.1, 0.01


def sentence(one: Apart) -> str:
    """Say what a rank does and its peers don't."""
    who, peers = f"rank {one.rank}{_of(one.job)} on {quoted(one.label)}", many(one.peers, "peer")
    of_time = "of the time" if one.lasting else "since then"
    before = "" if one.lasting else f" ({percent(one.before)} before)"
    if one.kind == "runs":
        return (
            f"{who} runs while its {peers} wait{_since(one)}: it slept {percent(one.slept)} {of_time}, "
            f"they {percent(one.usual)}{before}"
        )
    guess = _guess([one], "it hangs", "is a victim", "coordinates")
    return (
        f"{who} waits{_since(one)}: it slept {percent(one.slept)} {of_time}{_why([one])}{before}, "
        f"its {peers} {percent(one.usual)}; {guess}"
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
    begun = "" if first.lasting else f", rank {first.rank} first{_since(first)}"
    guess = _guess(alike, "they hang", "are victims", "coordinate")
    return (
        f"{len(alike)} of {first.of} ranks{_of(first.job)} wait ({numbers}{rest}){begun}: they slept {percent(slept)} "
        f"of the time{'' if first.lasting else ' since then'}{_why(alike)}, the other {first.peers} "
        f"{percent(first.usual)}; {guess}{more}"
    )


def _guess(alike: Sequence[Apart], hang: str, victim: str, coordinate: str) -> str:
    """Say what may be the matter: one that never did anything else may be a master, made to wait."""
    if not alike[0].lasting:
        return f"{hang}, or {victim}"
    worked = [one.worked for one in alike]
    least, most = np.min(worked), np.max(worked)
    whose = "its" if len(alike) == 1 else "their"
    said = f"before the recording {whose} processes used {percent(float(np.median(worked)))} of a CPU: "
    if least >= _WORKED:
        return f"{said}{hang}, or {victim}"
    if most <= _NEVER:
        return f"{said}{hang} since the beginning, or only {coordinate}"
    return f"{said if most == most else ''}{hang}, {victim} or only {coordinate}"


def _since(one: Apart) -> str:
    if one.lasting:
        return ""
    return f" since {moment(one.since_ns, date=False) if one.since_ns == one.since_ns else 'some time'}"


def _of(job: str) -> str:
    return f" of {job}" if job else ""


def _why(alike: Sequence[Apart]) -> str:
    """Return what all of them slept for."""
    reasons = {one.slept_for for one in alike}
    return f" {reason}" if len(reasons) == 1 and (reason := reasons.pop()) else ""
