"""The alerts that the receiver makes itself: a node fell silent, and it speaks again.

Their monotonic times are the receiver's, for the node's own clock can't be asked any more.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from tracer import units
from tracer.alerts.alert import Alert, Condition, Severity, State, Subject, alert_id
from tracer.errors import RecordingError
from tracer.fleet.facts import Facts, facts_of
from tracer.fleet.node import Node
from tracer.window import Window

__all__ = ["RULE", "back", "silence"]

RULE = "silent-node"
_TITLE = "node silent"
_NEXT = "look at its console (BMC); once it is up again: foreshock postmortem"
_NEXT_BACK = "if it has rebooted: foreshock postmortem, there"
_LAST_INTERVALS = 3
_LAST_ALERTS = 2


def silence(node: Node, now_ns: int) -> Alert:
    """Return that ``node`` has been silent since its last word, with what it said last."""
    since_ns, silent_ns = node.heard_ns, now_ns - node.heard_ns
    facts = _facts(node)
    speak = [source for source, speaker in node.speakers.items() if speaker.heard_ns > since_ns + node.interval_ns]
    # The node lives, but nobody sees all of it any more.
    who = f"its agent silent (still heard: {', '.join(sorted(speak))})" if speak else "silent"
    texts = [f"{who} for {units.duration(silent_ns)} without a goodbye"]
    texts += [f"last word at {units.moment(node.heard_unix_ns)}"]
    texts += [_before(alert, since_ns - at_ns) for at_ns, alert in islice(reversed(node.last), _LAST_ALERTS)]
    texts += facts.texts
    if dropped := sum(speaker.dropped for speaker in node.speakers.values()):
        texts.append(f"its streams had dropped {dropped}")
    subject = Subject("node")
    return Alert(
        id=alert_id(node.boot_id, RULE, subject, since_ns),
        rule=RULE,
        title=_TITLE,
        state=State.FIRING,
        condition=Condition(
            subject,
            Severity.PAGE,
            "; ".join(texts),
            since_ns,
            {"silent_s": silent_ns / 1e9, "dropped": dropped, **facts.numbers},
        ),
        next=_NEXT,
        node=node.name,
        boot_id=node.boot_id,
        sequence=1,
        began_ns=since_ns,
        at_ns=now_ns,
        unix_ns=time.time_ns(),
        source="fleet",
    )


def back(silent: Alert, now_ns: int, lasted_ns: int, how: str) -> Alert:
    """Return that the node of ``silent`` speaks again; ``how`` is added to that."""
    summary = f"speaks again after {units.duration(lasted_ns)} of silence{how}"
    return replace(
        silent,
        state=State.RESOLVED,
        condition=replace(silent.condition, summary=summary, numbers={"silent_s": lasted_ns / 1e9}),
        next=_NEXT_BACK,
        sequence=silent.sequence + 1,
        at_ns=now_ns,
        unix_ns=time.time_ns(),
    )


def _before(alert: Alert, before_ns: int) -> str:
    word = "resolved" if alert.state is State.RESOLVED else alert.severity.name
    return f"{units.duration(max(0, before_ns))} before that {word} {alert.condition.summary[:100]}"


def _facts(node: Node) -> Facts:
    intervals: list[list[Window]] = []
    for kept in islice(reversed(node.kept), _LAST_INTERVALS):
        with suppress(RecordingError):
            intervals.insert(0, kept.interval.windows())
    return facts_of(intervals)
