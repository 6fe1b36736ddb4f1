"""Which lines of the kernel's log, as a view shows them, a rule has to tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tracer.alerts.alert import Condition, Culprit, Severity, Subject
from tracer.alerts.logpattern import Groups, LogPattern
from tracer.alerts.logtable import patterns
from tracer.alerts.rule import View
from tracer.window import Window

__all__ = ["LINES", "Found", "conditions", "found", "found_in"]

LINES = ("kernellog", "lines")


@dataclass(frozen=True)
class Found:
    """A line that matched: about what, how bad, in words, when, how often in the interval."""

    subject: Subject
    severity: Severity
    says: str
    next: str
    time_ns: int
    count: int
    groups: Groups


def found(view: View, rule: str) -> list[Found]:
    """Return the lines of the latest interval that ``rule`` has to tell, in the order of the log."""
    return found_in(view.windows.get(LINES), rule)


def found_in(window: Window | None, rule: str) -> list[Found]:
    """Return the lines of one interval as ``found`` does."""
    matches = []
    for row in window.rows if window else ():
        text = bytes(row["text"]).decode("utf-8", "surrogateescape")
        match = next((each for each in _matches(rule, text)), None)
        if match:
            matches.append(_found(*match, int(row["time_ns"]), int(row["count"])))
    return matches


def conditions(matches: Iterable[Found]) -> Iterator[Condition]:
    """Yield one condition for each subject: of its lines the worst speaks, the first says since when."""
    by_subject: dict[Subject, list[Found]] = {}
    for each in matches:
        by_subject.setdefault(each.subject, []).append(each)
    for subject, lines in by_subject.items():
        # Of equally bad lines the first: what follows is mostly its consequence.
        worst = max(lines, key=lambda each: each.severity)
        also, advice = _others(worst, lines), f"; {worst.next}" if worst.next else ""
        since_ns, count = min(each.time_ns for each in lines), sum(each.count for each in lines)
        culprit = Culprit(comm) if (comm := worst.groups.get("comm", "")) else None
        yield Condition(subject, worst.severity, f"{worst.says}{also}{advice}", since_ns, {"lines": count}, culprit)


def _others(worst: Found, lines: Sequence[Found]) -> str:
    others = [*dict.fromkeys(each.says for each in lines if each.says != worst.says)]
    if not others:
        return ""
    return f" (also: {others[0]}{f', and {len(others) - 1} more' if len(others) > 1 else ''})"


def _matches(rule: str, text: str) -> Iterator[tuple[LogPattern, re.Match[str]]]:
    for pattern, regex in _compiled().get(rule, ()):
        match = regex.match(text)
        if match:
            yield pattern, match


def _found(pattern: LogPattern, match: re.Match[str], time_ns: int, count: int) -> Found:
    groups = {name: value or "" for name, value in match.groupdict().items()}
    severity, says = pattern.judge(groups) if pattern.judge else (pattern.severity, pattern.says.format_map(groups))
    subject = Subject(pattern.kind, pattern.about.format_map(groups))
    return Found(subject, severity, says, pattern.next, time_ns, count, groups)


@cache
def _compiled() -> dict[str, list[tuple[LogPattern, re.Pattern[str]]]]:
    by_rule: dict[str, list[tuple[LogPattern, re.Pattern[str]]]] = {}
    for pattern in patterns():
        by_rule.setdefault(pattern.rule, []).append((pattern, re.compile(pattern.regex)))
    return by_rule
