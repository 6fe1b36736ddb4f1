"""A node's end as text: what happened first, then the alerts, the kernel's words and the last windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracer.alerts.alert import Alert
from tracer.alerts.lines import evidence_text
from tracer.analysis.verdict import Verdict
from tracer.reports import json, text
from tracer.reports.layout import Column, Style, wrap
from tracer.reports.narrow import LEAST_WIDTH, rows_of
from tracer.reports.story import Panic, Sign, Story, sentences
from tracer.units import duration, many, moment

__all__ = ["SCHEMA", "as_dict", "render", "what_is_missing"]

SCHEMA = "foreshock.postmortem/1"
_SHOWN = 20
_FRAMES = 6
_COLUMNS = (
    Column("told (UTC)", False, width=10),
    Column("lead", width=12),
    Column("severity", False, width=8),
    Column("at the end", False, width=10),
)
_NAMES = {
    "torn": ("record", "being written at the end"),
    "damaged": ("record", "damaged"),
    "lost": ("record", "refused by the disk"),
    "dropped": ("record", "not taken by a slow disk"),
    "cut": ("byte", "cut off the file"),
}


def render(story: Story, verdict: Verdict, *, width: int = 80, color: bool = False) -> list[str]:
    """Return the story as lines of at most ``width`` (at least 40) cells."""
    width, style = max(width, LEAST_WIDTH), Style(color)
    lines = [style(line, "bold") for sentence in sentences(story) for line in wrap(sentence, width)]
    lines += ["", *_facts(story, width), *_alerts(story, width, style)]
    for panic in story.panics:
        lines += _panic(panic, width, style)
    lines += ["", style(f"THE LAST {duration(story.summary.intervals.ns)}", "bold")]
    return [*lines, *text.render(story.summary, verdict, story.source, width=width, color=color)]


def as_dict(story: Story, verdict: Verdict) -> dict[str, Any]:
    """Return the story as a tree for ``reports.json.dumps``; keys are added, never renamed or removed."""
    return {
        "schema": SCHEMA,
        "file": story.path,
        "sentences": sentences(story),
        "ending": story.ending.value,
        "goodbye": story.goodbye or None,
        "boot_id": story.boot_id,
        "boot_id_now": story.boot_now or None,
        "first_record_unix_s": story.first_unix_ns / 1e9,
        "last_record_unix_s": story.last_unix_ns / 1e9,
        "end_unix_s": story.end_unix_ns / 1e9,
        "agent_starts": story.starts,
        "first_sign": story.first_sign.first.id if story.first_sign else None,
        "alerts": [_sign(story, sign) for sign in story.signs],
        "alerts_not_kept": story.unkept,
        "panics": [
            {"line": one.line, "lines": one.lines, "file": one.file, "of_this_boot": one.ours} for one in story.panics
        ],
        "searched": list(story.searched),
        "missing": dict(story.missing),
        "warning": story.warning,
        "last": json.as_dict(story.summary, verdict, story.source),
    }


def what_is_missing(missing: Mapping[str, int]) -> str:
    """Return in words what a black box has not got, by what it is; "" when nothing is missing."""
    return ", ".join(f"{many(number, _NAMES[name][0])} {_NAMES[name][1]}" for name, number in missing.items())


def _sign(story: Story, sign: Sign) -> dict[str, Any]:
    condition, countdown = sign.latest.condition, sign.first.condition.countdown
    culprit, evidence = condition.culprit, sign.latest.evidence
    return {
        "id": sign.first.id,
        "rule": sign.first.rule,
        "subject": str(condition.subject),
        "severity": sign.severity.name.lower(),
        "state": sign.latest.state.value,
        "shadow": sign.latest.shadow,
        "summary": condition.summary,
        "first_told_unix_s": sign.first.unix_ns / 1e9,
        "last_told_unix_s": sign.latest.unix_ns / 1e9,
        "lead_s": story.lead_ns(sign) / 1e9,
        "messages": sign.messages,
        "numbers": dict(condition.numbers),
        "countdown": countdown.told(sign.first.at_ns) if countdown else None,
        "culprit": {
            "task": culprit.task,
            "context": culprit.context,
            "stack": list(culprit.stack),
            "module": culprit.module,
        }
        if culprit
        else None,
        "evidence": {
            "recording": evidence.recording,
            "report": evidence.report or None,
            "stacks": list(evidence.stacks),
        }
        if evidence
        else None,
    }


def _facts(story: Story, width: int) -> list[str]:
    boot = f"boot {story.boot_id[:8] or 'unknown'}"
    now = f"this machine is in boot {story.boot_now[:8]} now" if story.boot_now else "read on another machine"
    span = f"{moment(story.first_unix_ns)} to {moment(story.last_unix_ns)}"
    facts = [story.path, boot, now, span]
    facts += [f"{many(story.starts, 'start')} of the agent"] if story.starts else []
    missing = what_is_missing(story.missing)
    lines = wrap(" · ".join(facts), width, "RECORD   ", "         ")
    lines += wrap(missing or "nothing", width, "MISSING  ", "         ")
    return lines + (wrap(story.warning, width, "WARNING  ", "         ") if story.warning else [])


def _alerts(story: Story, width: int, style: Style) -> list[str]:
    if not story.signs:
        return ["", "No alert was recorded."] if story.starts else []
    shown = story.signs if len(story.signs) <= _SHOWN else (*story.signs[:5], *story.signs[5 - _SHOWN :])
    left = len(story.signs) - len(shown) + story.unkept
    title = wrap("ALERTS in order; lead: from the first message to the end", width, "", "  ")
    lines = ["", *(style(line, "bold") for line in title)]
    lines += rows_of(_COLUMNS, [], width, style)[0]
    for sign in shown:
        lines += _alert(story, sign, width, style)
    return [*lines, style(f"  {many(left, 'alert')} between them not shown", "dim")] if left else lines


def _alert(story: Story, sign: Sign, width: int, style: Style) -> list[str]:
    state = "on trial" if sign.latest.shadow else sign.latest.state.value
    told = moment(sign.first.unix_ns, date=False).removesuffix(" UTC")
    row = [told, duration(story.lead_ns(sign)), sign.severity.name.lower(), state]
    ((*head,),) = rows_of(_COLUMNS, [row], width, style)[1]
    indent = "      "
    lines = [*head, *wrap(sign.first.headline, width, indent, indent)]
    if sign.messages > 1 and sign.latest.condition.summary != sign.first.condition.summary:
        lines += wrap(f"last told: {sign.latest.condition.summary}", width, indent, indent)
    for line in (*_culprit(sign.latest), evidence_text(sign.latest.evidence)):
        lines += wrap(line, width, indent, indent) if line else []
    return lines


def _culprit(alert: Alert) -> Sequence[str]:
    culprit = alert.condition.culprit
    if culprit is None:
        return ()
    who = " in ".join(part for part in (culprit.task, culprit.context) if part) or "unknown"
    module = f" [{culprit.module}]" if culprit.module else ""
    stack = " < ".join(culprit.stack[:_FRAMES])
    return (f"ran there: {who}{module}", *((stack,) if stack else ()))


def _panic(panic: Panic, width: int, style: Style) -> list[str]:
    whose = {True: "of this boot", False: "of another time", None: "without a time"}[panic.ours]
    title = style(f"THE KERNEL'S LAST WORDS, {whose}", "bold")
    lines = ["", title, *wrap(panic.file, width, "  ", "  ")]
    for line in panic.lines:
        lines += wrap(line, width, "  ", "    ")
    return lines
