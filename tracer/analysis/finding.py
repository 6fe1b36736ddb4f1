"""What a rule answers: something stands out, all is normal, or it could not see."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Finding", "Normal", "Outcome", "Severity", "missing", "outcome"]


class Severity(enum.IntEnum):
    """How soon somebody should look. NOTE: explains other findings or limits what they mean."""

    NOTE = 1
    WARNING = 2
    CRITICAL = 3


@dataclass(frozen=True)
class Finding:
    """One thing that stands out, in sentences that may hold unescaped names from the node.

    Attributes:
        rule: stable name for programs, ``probe.what``, e.g. ``"runqueue.wait"``; never shown to people.
        topic: the same in a few plain words, e.g. ``"long waits for a CPU"``.
        subject: where: ``"CPU 1"``, ``"eth0"``.
        what: the number, where, and the threshold it passed.
        who: who or what caused it, as far as seen; may be empty.
        next: what to do or look at next.
        anchor: the section of docs/reading.md.
        value, threshold, unit: the number that decided, in base units (s, 1 for shares, 1/s).
        values: more facts for programs.
    """

    rule: str
    topic: str
    severity: Severity
    subject: str
    what: str
    who: str
    next: str
    anchor: str
    value: float
    threshold: float
    unit: str
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_caveat(self) -> bool:
        """Whether it is about the data, not the node: how far the other answers can be trusted."""
        return self.rule.startswith("quality.")

    @property
    def excess(self) -> float:
        """How many times the threshold."""
        return self.value / self.threshold if self.threshold else float("inf")


@dataclass(frozen=True)
class Normal:
    """A question with a good answer: what was asked, what was measured, what is normal."""

    question: str
    measured: str
    limit: str


@dataclass(frozen=True)
class Outcome:
    """The answer of one rule: findings, or what is normal, or a sentence on what was not seen.

    Exactly one of the three, so that no question gets lost.
    """

    findings: tuple[Finding, ...] = ()
    normal: Normal | None = None
    missing: str = ""


def missing(sentence: str) -> Outcome:
    """There was nothing to judge; ``sentence`` says what and why."""
    return Outcome(missing=sentence)


def outcome(findings: list[Finding], question: str, measured: str, limit: str) -> Outcome:
    """Return the findings, or what is normal when there are none."""
    return Outcome(findings=tuple(findings)) if findings else Outcome(normal=Normal(question, measured, limit))
