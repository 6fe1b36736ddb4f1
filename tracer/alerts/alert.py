"""What an alert is: the value that rules and the engine make, and sinks, streams and the black box carry.

Texts may hold names from the node as they are; whoever shows them escapes them for where they are shown.
Times are CLOCK_MONOTONIC ns of the node unless they say otherwise.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracer import units

__all__ = ["Alert", "Condition", "Countdown", "Culprit", "Evidence", "Severity", "State", "Subject", "alert_id"]


class Severity(enum.IntEnum):
    """Who has to know. INFO: whoever looks. WARNING: suspected, look today. PAGE: wake somebody, the node is dying."""

    INFO = 1
    WARNING = 2
    PAGE = 3


class State(enum.Enum):
    """PENDING alerts are not delivered: the condition has not held for long enough yet."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True)
class Subject:
    """What the alert is about; two alerts of one rule and subject are the same alert.

    ``kind``: node, cpu, device, queue, task, cgroup, memory, filesystem. ``name`` has nothing volatile in it
    (no counts, no times): ``"3"``, ``"eth0"``, ``"eth0 tx 5"``, ``"python3[4411]"``; of the node itself, "".
    """

    kind: str
    name: str = ""

    def __str__(self) -> str:
        shown = "CPU" if self.kind == "cpu" else self.kind
        return f"{shown} {self.name}".strip()


@dataclass(frozen=True)
class Culprit:
    """What ran there, as far as seen.

    ``task``: ``"kworker/3:1[812]"``. ``context``: ``"softirq TIMER"``. ``stack``: symbols or addresses of kernel
    code, innermost first. ``module``: of the innermost frame that is not the core kernel's, or the driver's name.
    """

    task: str = ""
    context: str = ""
    stack: tuple[str, ...] = ()
    module: str = ""


@dataclass(frozen=True)
class Countdown:
    """What the kernel's own detector does next, unless the cause ends.

    ``detector``: ``"soft lockup detector"``. ``latest_ns``: it acts then at the latest; the cause may be cleared by a
    feed that we don't see, so it is always told as ``≤``. ``panics``: whether it panics then, or only logs.
    ``setting``: the settings that decide, as read: ``"kernel.softlockup_panic=1, kernel.watchdog_thresh=10"``.
    """

    detector: str
    latest_ns: int
    panics: bool
    setting: str = ""

    def told(self, now_ns: int) -> str:
        """Return the countdown in words: ``"panic in ≤ 16 s"`` or ``"will be logged in ≤ 16 s, no panic"``."""
        left_ns = max(0, self.latest_ns - now_ns)
        left = f"in ≤ {units.duration(left_ns)}" if left_ns else "any moment"
        return f"panic {left}" if self.panics else f"will be logged {left}, no panic"


@dataclass(frozen=True)
class Condition:
    """What a rule finds true at one moment.

    ``summary``: one sentence with the numbers. ``since_ns``: since when. ``numbers``: for programs, with the unit in
    the name: ``{"stalled_s": 5.2}``.
    """

    subject: Subject
    severity: Severity
    summary: str
    since_ns: int
    numbers: Mapping[str, float] = field(default_factory=dict)
    culprit: Culprit | None = None
    countdown: Countdown | None = None


@dataclass(frozen=True)
class Evidence:
    """What was recorded because an alert fired: the seconds after it with stacks, and the minute before it.

    ``recording``, ``report``: paths on the node; ``report`` is "" when there is none. ``stacks``: the strongest, a line
    each: ``"churn[4711] 61 % of on-CPU samples: clear_page_erms < handle_mm_fault"``, innermost function first.
    """

    recording: str
    report: str = ""
    stacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alert:
    """A condition in a state, ready to be delivered.

    ``id`` is the same in every message about one occurrence, from whichever process: see ``alert_id``. ``sequence``
    rises with each. ``next``: what to do. ``quality``: what the data behind it missed, by reason. ``shadow``: the
    rule is on trial, so it is logged and nobody is told. ``unix_ns``: when this was said, by the node's clock.
    ``evidence``: of what follows the first message, some seconds later, where the agent was asked for it.
    """

    id: str
    rule: str
    title: str
    state: State
    condition: Condition
    next: str
    node: str
    boot_id: str
    sequence: int
    began_ns: int
    at_ns: int
    unix_ns: int
    source: str = "agent"
    shadow: bool = False
    quality: Mapping[str, int] = field(default_factory=dict)
    evidence: Evidence | None = None

    @property
    def severity(self) -> Severity:
        """The condition's; an alert's severity rises, and falls only when it is resolved."""
        return self.condition.severity

    @property
    def says_panic(self) -> bool:
        """Whether it counts down to a panic."""
        countdown = self.condition.countdown
        return countdown is not None and countdown.panics

    @property
    def headline(self) -> str:
        """One line without the node's name: severity, what, the countdown."""
        what = self.condition.summary
        if self.state is State.RESOLVED:
            return f"resolved: {what}"
        countdown = self.condition.countdown
        return f"{what}; {countdown.told(self.at_ns)}" if countdown else what


def alert_id(boot_id: str, rule: str, subject: Subject, began_ns: int) -> str:
    """Return the id of one occurrence, 16 hexadecimal digits.

    Whoever sees the same occurrence makes the same id, provided it takes ``began_ns`` from the kernel's own record of
    it (``since_ns`` of a stall), not from its own clock.
    """
    text = "\0".join((boot_id, rule, subject.kind, subject.name, str(began_ns)))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
