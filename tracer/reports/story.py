"""What happened to a node, as far as it was recorded: values, and the sentences that say it first."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tracer.alerts.alert import Alert, Severity, State
from tracer.analysis.source import Source
from tracer.analysis.summary import Summary
from tracer.units import duration, moment

__all__ = ["Ending", "Panic", "Sign", "Story", "sentences", "signs_of"]

_FIRST_KEPT, _MOST_SIGNS = 100, 400


class Ending(enum.Enum):
    """How it ended. DIED: without a goodbye, and the node has been started since, or it isn't known."""

    LIVE = "live"
    STOPPED = "stopped"
    AGENT_GONE = "agent-gone"
    DIED = "died"
    CUT_OFF = "cut-off"


@dataclass(frozen=True)
class Sign:
    """One alert from its first message to its latest. ``messages``: how many there were."""

    first: Alert
    latest: Alert
    messages: int = 1

    @property
    def severity(self) -> Severity:
        """The highest that was told."""
        return self.latest.severity

    @property
    def fires(self) -> bool:
        """Whether it was firing when the record ended, and somebody was told."""
        return self.latest.state is State.FIRING and not self.latest.shadow


@dataclass(frozen=True)
class Panic:
    """What the kernel itself said. ``ours``: it fits this record's end by its time; None when it has none."""

    line: str
    lines: tuple[str, ...]
    file: str
    at_ns: int | None
    ours: bool | None


@dataclass(frozen=True)
class Story:
    """One boot's end. Times are CLOCK_MONOTONIC ns of the node; ``*_unix_ns`` those of the wall clock.

    ``boot_now``: the present boot of this machine, "" when the record comes from another. ``goodbye``: the reason, if
    there was one. ``starts``: of the agent; 0 for a recording, which holds no alerts. ``missing``: by what it is, only
    what there is. ``searched``: where the kernel's words were looked for.
    """

    path: str
    source: Source
    boot_id: str
    boot_now: str
    ending: Ending
    goodbye: str
    starts: int
    first_unix_ns: float
    last_unix_ns: float
    last_ns: int
    summary: Summary
    signs: tuple[Sign, ...] = ()
    unkept: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    panics: tuple[Panic, ...] = ()
    searched: tuple[str, ...] = ()
    warning: str = ""

    @property
    def panic(self) -> Panic | None:
        """The panic that ended it, as far as can be told."""
        return next((one for one in self.panics if one.line and one.ours is not False), None)

    @property
    def end_ns(self) -> int:
        """When it was over: the panic, where its time is known, else the last record."""
        panic = self.panic if self.ending is Ending.DIED else None
        return max(self.last_ns, panic.at_ns) if panic and panic.ours and panic.at_ns else self.last_ns

    @property
    def end_unix_ns(self) -> float:
        """The same by the wall clock."""
        return self.last_unix_ns + (self.end_ns - self.last_ns)

    @property
    def first_sign(self) -> Sign | None:
        """The alert that fired to the end and was told first, of the highest severity; None when none fired."""
        firing = [sign for sign in self.signs if sign.fires]
        worst = max((sign.severity for sign in firing), default=None)
        return min((one for one in firing if one.severity == worst), key=lambda one: one.first.at_ns, default=None)

    def lead_ns(self, sign: Sign) -> int:
        """Return how long before the end an alert was first told."""
        return max(0, self.end_ns - sign.first.at_ns)


def signs_of(alerts: Iterable[Alert]) -> tuple[tuple[Sign, ...], int]:
    """Return the alerts in the order of their first messages, and how many of the middle ones were not kept."""
    signs: dict[str, Sign] = {}
    unkept = 0
    for alert in alerts:
        known = signs.get(alert.id)
        if known is not None:
            signs[alert.id] = replace(known, latest=_merged(known.latest, alert), messages=known.messages + 1)
            continue
        signs[alert.id] = Sign(alert, alert)
        if len(signs) > _MOST_SIGNS:
            del signs[list(signs)[_FIRST_KEPT]]
            unkept += 1
    return tuple(signs.values()), unkept


def _merged(before: Alert, alert: Alert) -> Alert:
    """Return the later message with what only the earlier one knew."""
    condition = replace(
        alert.condition,
        severity=max(alert.condition.severity, before.severity),
        culprit=alert.condition.culprit or before.condition.culprit,
        countdown=alert.condition.countdown or before.condition.countdown,
    )
    return replace(alert, condition=condition, evidence=alert.evidence or before.evidence)


def sentences(story: Story) -> list[str]:
    """Return what happened in a few plain sentences, which may hold names from the node as they are."""
    said = [_ending(story)]
    if story.ending is Ending.DIED:
        said.append(_kernel(story))
    elif story.ending is Ending.STOPPED and story.boot_now and story.boot_id != story.boot_now:
        said.append(f"The node has been started again since: this is boot {story.boot_now[:8]}.")
    return said


def _ending(story: Story) -> str:
    node, when = story.source.host or "The node", moment(story.end_unix_ns)
    match story.ending:
        case Ending.LIVE:
            return f"{node} is alive: its agent writes this black box, last at {when}{_standing(story)}."
        case Ending.STOPPED if not story.starts:
            return f"The recording on {node} ended in good order at {when}."
        case Ending.STOPPED:
            why = f" ({story.goodbye})" if story.goodbye else ""
            return f"The agent on {node} stopped in good order at {when}{why}{_standing(story)}."
        case Ending.AGENT_GONE:
            return (
                f"The agent on {node} ended at {when} without a goodbye, killed or crashed; "
                f"the node itself is still in the same boot{_standing(story)}."
            )
        case Ending.CUT_OFF:
            return f"The recording on {node} was cut off at {when}."
        case _:
            if not story.boot_now and story.panic is None:
                when += " (or this copy was made then)"
            sign = story.first_sign
            if sign is None:
                return f"{node} died at {when}; no alert was firing: nothing announced it, or nothing was seen."
            lead = duration(story.lead_ns(sign))
            return f"{node} died at {when}, {lead} after the first sign: {sign.first.headline}{_culprit(sign)}."


def _culprit(sign: Sign) -> str:
    """Return what is known of the culprit by the latest message, and the first did not say."""
    culprit = sign.latest.condition.culprit
    if culprit is None:
        return ""
    module = f" [{culprit.module}]" if culprit.module else ""
    parts = (culprit.task, f"{culprit.stack[0]}{module}" if culprit.stack else module.strip())
    new = ", ".join(part for part in parts if part and part not in sign.first.headline)
    return f"; there ran {new}" if new else ""


def _standing(story: Story) -> str:
    sign = story.first_sign
    return f"; firing then: {sign.latest.condition.summary}" if sign else "; no alert was firing"


def _kernel(story: Story) -> str:
    panic = story.panic
    if panic is None:
        where = " or ".join(story.searched) or "pstore"
        return f"The kernel left no panic line of that boot in {where}."
    doubt = "" if panic.ours else " (it carries no time: it may be of another boot)"
    return f"The kernel's panic line: {panic.line}{doubt}."
