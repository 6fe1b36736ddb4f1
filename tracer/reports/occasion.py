"""What a recording was made for: the alert in a close-up's header, first of all that stands out in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracer.alerts.alert import Alert, Severity
from tracer.alerts.lines import began_unix_ns, culprit_text
from tracer.alerts.rule import Rule
from tracer.alerts.rules import rules
from tracer.analysis import finding
from tracer.analysis.finding import Finding
from tracer.analysis.summary import Summary
from tracer.analysis.verdict import Verdict, judge
from tracer.reports.story import Sign
from tracer.units import duration, moment

__all__ = ["BEGAN_NS", "foremost", "judged", "with_sign"]

#: Of the alert's finding: when it began, by the node's monotonic clock.
BEGAN_NS = "began_ns"
_SEVERITIES = {
    Severity.PAGE: finding.Severity.CRITICAL,
    Severity.WARNING: finding.Severity.WARNING,
    Severity.INFO: finding.Severity.NOTE,
}


def judged(summary: Summary, alert: Alert | None, told: Alert | None = None) -> Verdict:
    """Return what stands out: the alert that had it recorded or was ``told``, then what the summary's rules find."""
    verdict, first = judge(summary), alert or told
    if first is None:
        return verdict
    others = verdict.headline[:1].lower() + verdict.headline[1:]
    why = f"Recorded because of a {_called(first)}" if alert else f"The agent told a {_called(first)}"
    headline = f"{why}: {first.title}. Besides, {others}"
    return replace(verdict, headline=headline, findings=(_finding(first), *verdict.findings))


def foremost(signs: Sequence[Sign]) -> Alert | None:
    """Return the alert of the highest severity that people were told, of several the first, as it was at the worst."""
    told = [one for one in signs if not one.latest.shadow]
    worst = min(told, key=lambda one: (-one.severity, one.first.at_ns), default=None)
    return replace(worst.first, condition=worst.latest.condition) if worst else None


def with_sign(signs: Sequence[Sign], alert: Alert | None) -> Sequence[Sign]:
    """Return the alerts that are told, that one among them."""
    return signs if alert is None or any(one.first.id == alert.id for one in signs) else (Sign(alert, alert), *signs)


def _called(alert: Alert) -> str:
    return "page" if alert.severity is Severity.PAGE else f"{alert.severity.name.lower()} alert"


def _finding(alert: Alert) -> Finding:
    rule = rules().get(alert.rule)
    after = duration(max(0, alert.at_ns - alert.began_ns))
    when = f"began {moment(began_unix_ns(alert))}, told {after} later" if alert.unix_ns else f"told after {after}"
    return Finding(
        rule=".".join(rule.needs[0]) if rule and rule.needs else alert.rule,
        topic=alert.title,
        severity=_SEVERITIES[alert.severity],
        subject=str(alert.condition.subject),
        what=f"alert {alert.rule}: {alert.headline}; {when}. Threshold: {_threshold(rule)}",
        who=culprit_text(alert.condition.culprit),
        next=alert.next,
        anchor="",
        value=float("nan"),
        threshold=float("nan"),
        unit="",
        values={BEGAN_NS: alert.began_ns},
    )


def _threshold(rule: Rule | None) -> str:
    """Return from when on it speaks, in words; a rule without a number in that judges what happens once."""
    said = rule.limits.replace("`", "") if rule else ""
    return said if any(map(str.isdigit, said)) else "once is enough."
