"""The comparison in one sentence, and how its numbers are told. Names in it are quoted, not yet escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.analysis.names import quoted, task
from tracer.compare import limits
from tracer.compare.comparison import Common, Comparison
from tracer.compare.metrics import METRICS
from tracer.compare.quality import sentence
from tracer.compare.saying import summed
from tracer.compare.suspect import Detail, Suspect
from tracer.compare.telling import Told, Unit
from tracer.units import MISSING, duration, many, moment, percent, rate, times

__all__ = ["amount", "headline", "measured", "since"]

_NAMED = 3


def headline(comparison: Comparison, details: Mapping[str, Detail]) -> str:
    """Return the verdict. ``details`` are of suspects, by label."""
    parts = []
    if comparison.suspects:
        parts.append(_stragglers(comparison, details))
    if comparison.together:
        parts.append(_common(comparison.together[0]))
    if comparison.ranks:
        parts.append(summed(comparison.ranks))
    if not (comparison.suspects or comparison.together):
        effect = limits.EFFECT_OF_FEW if comparison.few else limits.EFFECT
        alike = f"no node deviates by more than {percent(effect - 1)}"
        if comparison.ranks:
            alike = f"otherwise the nodes are alike within {percent(effect - 1)}"
        unseen = f" in what was recorded: {sentence(comparison.reservations)}" if comparison.reservations else ""
        parts.append(f"{alike}{unseen}")
    if comparison.victims:
        parts.append(_victims(comparison))
    return "; ".join(parts)


def measured(told: Told) -> str:
    """Return a deviation as a sentence's part: ``NET_RX softirq delay p99 9.1 ms against 0.2 ms``."""
    what = f"{told.series.title} {told.quantity}".rstrip()
    return f"{what} {amount(told.value, told.unit)} against {amount(told.median, told.unit)}"


def amount(value: float, unit: Unit) -> str:
    """Return a number in its unit."""
    return {"ns": duration, "share": percent, "per second": rate}[unit](value)


def since(suspect: Suspect) -> str:
    """Return the time of day from which on it deviates, in UTC."""
    if suspect.lasting:
        return "the start"
    return moment(suspect.since_ns, date=False) if suspect.since_ns == suspect.since_ns else MISSING


def _stragglers(comparison: Comparison, details: Mapping[str, Detail]) -> str:
    suspects, nodes = comparison.suspects, len(comparison.labels)
    if len(suspects) > nodes / 2:
        return f"{len(suspects)} of {nodes} nodes deviate, each in its own way: no single one is the straggler"
    if len(suspects) > 1:
        named = [f"{quoted(one.label)} ({measured(one.deviations[0])})" for one in suspects[:_NAMED]]
        rest = f" and {len(suspects) - _NAMED} more" if len(suspects) > _NAMED else ""
        return f"{len(suspects)} of {nodes} nodes are stragglers: {', '.join(named)}{rest}"
    (one,) = suspects
    said = "may be" if one.confidence == "low" else "is"
    told, detail = one.deviations[0], details.get(one.label, Detail())
    parts = [f"{measured(told)} ({many(told.peers, 'peer')})", *_when(one), *([detail.cpus] if detail.cpus else [])]
    who = f"; {task(detail.holder, detail.pid)} had the CPU" if detail.holder else ""
    who += ", as on its peers" if detail.holder and detail.usual else ""
    who += f"; {detail.taken}" if detail.taken else ""
    whose = f"; {detail.rank} waited" if detail.rank else f"; on it: {detail.jobs}" if detail.jobs else ""
    twin = next(label for label in comparison.labels if label != one.label) if nodes == 2 else ""
    or_else = f"; or {quoted(twin)} was slower before: two nodes don't tell" if twin and not one.lasting else ""
    return f"node {quoted(one.label)} {said} the straggler: {', '.join(parts)}{who}{whose}{or_else}"


def _when(suspect: Suspect) -> Sequence[str]:
    when = since(suspect)
    if suspect.gap_ns == suspect.gap_ns:
        return [f"since a moment between {moment(suspect.gap_ns, date=False).removesuffix(' UTC')} and {when}"]
    return [] if when == MISSING else [f"since {when}"]


def _common(common: Common) -> str:
    label, ratio = common.changed[0]
    changed, title = len(common.changed), common.series.title
    who = f"all {changed} nodes" if changed == common.nodes else f"{changed} of {common.nodes} nodes"
    most = f", most of all {quoted(label)} ({times(ratio)})"
    if common.lasting:
        named = ", ".join([f"{quoted(label)} ({times(ratio)})", *(quoted(one) for one, _ in common.changed[1:_NAMED])])
        rest = f" and {changed - _NAMED} more" if changed > _NAMED else ""
        kind = "slower" if METRICS[common.series.metric].kind == "histogram" else "worse"
        return f"common cause: {who} are {kind} from the start in {title}: {named}{rest}"
    when = "" if common.since_ns != common.since_ns else f" since {moment(common.since_ns, date=False)}"
    return f"common cause: {who} deviate together in {title}{when}{most}"


def _victims(comparison: Comparison) -> str:
    """Say who waits; of a few nodes nobody knows whether they work on the same."""
    one, number = comparison.victims[0], len(comparison.victims)
    if number > 1:
        does = "have less to do" if comparison.few else "only wait for the others"
        return f"{number} nodes {does}, among them {quoted(one.label)}"
    does = "has less to do" if comparison.few else "only waits for the others"
    return f"{quoted(one.label)} {does} ({measured(one.deviations[0])})"
