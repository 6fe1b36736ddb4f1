"""What a run shows: first alert, culprit, countdown, panic, lead time, and what was left afterwards. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .receiver import Line
from .scenarios import Scenario

__all__ = ["Run"]

_PANIC = "Kernel panic - not syncing: "
_SILENT = "silent-node"
_LOUD = ("warning", "page")
_TOLERANCE = 0.2
_QUARTER = 0.25
#: An interval, and what it takes to be written or sent by an emulated machine.
_LAST_WORDS_S = 2.0


@dataclass(frozen=True)
class Told:
    """An alert's message as it came; ``at_ns`` of the receiver's clock."""

    at_ns: int
    alert: Mapping[str, Any]

    @property
    def panic_ns(self) -> int | None:
        """When it says that the kernel will panic, in the receiver's clock; None: it does not."""
        countdown = self.alert.get("countdown")
        if not countdown or not countdown["panics"]:
            return None
        return self.at_ns + int(countdown["latest_ns"]) - int(self.alert["at_ns"])


@dataclass(frozen=True)
class Run:
    """A scenario's run in a kernel: the lines that came, what was read off the disk, and when, with which revision."""

    scenario: Scenario
    kernel: str
    lines: tuple[Line, ...]
    story: Mapping[str, Any]
    measured: str = ""

    @cached_property
    def fault(self) -> Line | None:
        """The line that says that the fault begins, with the guest's time of day."""
        return next((line for line in self.lines if line.text.startswith("lab: fault")), None)

    @cached_property
    def panic(self) -> Line | None:
        """The panic's first line."""
        return next((line for line in self.lines if line.channel == "console" and _PANIC in line.text), None)

    @property
    def panicked_as_meant(self) -> bool:
        """Whether the panic is the scenario's, or there is none where there can't be one."""
        if not self.scenario.panic or not self.panic:
            return not self.scenario.panic and not self.panic
        return bool(re.search(self.scenario.panic, self.panic.text))

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """The messages after the fault and before the panic, of the rules that count."""
        return tuple(one for one in self._messages() if one.alert["rule"] in self.scenario.rules)

    @cached_property
    def others(self) -> tuple[str, ...]:
        """Other rules that spoke after the fault and before the panic."""
        rules = [one.alert["rule"] for one in self._messages()]
        return tuple(dict.fromkeys(rule for rule in rules if rule not in self.scenario.rules))

    @cached_property
    def pages(self) -> tuple[str, ...]:
        """The rules that paged somebody after the fault and before the panic."""
        return tuple(dict.fromkeys(one.alert["rule"] for one in self._messages() if one.alert["severity"] == "page"))

    @property
    def first(self) -> Told | None:
        """The first message of a rule that counts."""
        return self.told[0] if self.told else None

    @property
    def alert_s(self) -> float | None:
        """From the fault to the first message."""
        return self._since_fault(self.first.at_ns) if self.first else None

    @property
    def panic_s(self) -> float | None:
        """From the fault to the panic."""
        return self._since_fault(self.panic.at_ns) if self.panic else None

    @property
    def lead_s(self) -> float | None:
        """From the first message to the panic."""
        return (self.panic.at_ns - self.first.at_ns) / 1e9 if self.panic and self.first else None

    @property
    def named(self) -> Told | None:
        """The first message that names the culprit."""
        return next((one for one in self.told if self.scenario.culprit in _accused(one.alert)), None)

    @property
    def accused(self) -> str:
        """Whom the last message with a culprit accuses, in short."""
        for one in reversed(self.told):
            culprit = one.alert.get("culprit")
            if culprit:
                return str((list(culprit["stack"]) or [culprit["task"] or culprit["module"]])[0])
        return ""

    @property
    def countdown_told(self) -> Told | None:
        """The message whose countdown is scored: a timer's first, a slope's latest by half-way."""
        told = [one for one in self.told if one.panic_ns is not None]
        if self.scenario.countdown == "slope" and self.panic and self.fault:
            half_ns = (self.fault.at_ns + self.panic.at_ns) // 2
            told = [one for one in told if one.at_ns <= half_ns][-1:]
        return told[0] if told else None

    @property
    def countdown_s(self) -> float | None:
        """The seconds to the panic that were said then."""
        one = self.countdown_told
        return (one.panic_ns - one.at_ns) / 1e9 if one and one.panic_ns is not None else None

    @property
    def countdown_error(self) -> float | None:
        """By how much that was too long (positive) or too short, as a share of the truth; a slope's from half-way."""
        one = self.countdown_told
        if not one or one.panic_ns is None or not self.panic or not self.fault:
            return None
        slope = self.scenario.countdown == "slope"
        from_ns = (self.fault.at_ns + self.panic.at_ns) // 2 if slope else one.at_ns
        return (one.panic_ns - self.panic.at_ns) / max(self.panic.at_ns - from_ns, 1)

    @property
    def silent_s(self) -> float | None:
        """From the panic to the dead-man rule's word; negative where the dying node fell silent before."""
        if not self.panic or not self.fault:
            return None
        for line, alert in self._alerts():
            if alert["rule"] == _SILENT and alert["state"] == "firing" and line.at_ns > self.fault.at_ns:
                return (line.at_ns - self.panic.at_ns) / 1e9
        return None

    @property
    def box_s(self) -> float | None:
        """From the black box's last record to the panic. Both times of day are the guest's."""
        last = self.story.get("last_record_unix_s")
        if not self.panic_s or not self.fault or not isinstance(last, (int, float)):
            return None
        return float(self.fault.text.split()[2]) + self.panic_s - last

    @property
    def box_alerts(self) -> int:
        """How many alerts the black box has kept."""
        return len(self.story.get("alerts", ()))

    def misses(self) -> Iterator[str]:
        """Yield every goal that this run does not meet."""
        scenario = self.scenario
        if not self.fault:
            yield "the guest did not come as far as the fault"
            return
        if not self.panicked_as_meant:
            yield f"panic: {self.panic.text.partition(_PANIC)[2] if self.panic else 'none'}"
        if scenario.rules and not self.first:
            yield "no alert"
        elif scenario.rules:
            yield from self._alert_misses()
        if self.panic and self.silent_s is None:
            yield "the dead-man rule said nothing"
        if not self.panic and any(not self._taken_back(one) for one in self.told):
            yield "said a panic that did not come"
        if not scenario.panic and not scenario.rules and self.pages:
            yield f"false alarms: {', '.join(self.pages)}"
        # A CPU that is stuck may be the one that the disk's file system waits for.
        if self.panic and not scenario.rules and (self.box_s is None or self.box_s > _LAST_WORDS_S):
            yield "the black box has not the last interval"

    def _alert_misses(self) -> Iterator[str]:
        scenario = self.scenario
        if scenario.culprit and not self.named:
            yield f"{scenario.culprit} not named"
        if scenario.quarter and self.alert_s and self.panic_s and self.alert_s > _QUARTER * self.panic_s:
            yield f"alert after {self.alert_s / self.panic_s:.0%} of the time"
        if scenario.countdown and self.panic:
            if self.countdown_error is None:
                yield "no countdown"
            elif abs(self.countdown_error) > _TOLERANCE:
                yield f"countdown {self.countdown_error:+.0%}"

    def _taken_back(self, told: Told) -> bool:
        """Return whether a panic that did not come by the time that was said had been unsaid by then."""
        due_ns = told.panic_ns
        over_ns = next((line.at_ns for line in self.lines if line.text == "lab: over"), self._end_ns)
        if due_ns is None or due_ns >= over_ns:
            return True
        later = (Told(line.at_ns, alert) for line, alert in self._alerts() if alert["id"] == told.alert["id"])
        return any(
            one.alert["state"] == "resolved" or one.panic_ns is None or one.panic_ns > due_ns
            for one in later
            if told.at_ns < one.at_ns < due_ns
        )

    @property
    def _end_ns(self) -> int:
        return self.panic.at_ns if self.panic else self.lines[-1].at_ns

    def _since_fault(self, at_ns: int) -> float | None:
        return (at_ns - self.fault.at_ns) / 1e9 if self.fault else None

    def _alerts(self) -> Iterator[tuple[Line, Mapping[str, Any]]]:
        for line in self.lines:
            if line.channel == "alerts":
                yield line, json.loads(line.text)

    def _messages(self) -> Iterator[Told]:
        if self.fault:
            for line, alert in self._alerts():
                loud = alert["state"] == "firing" and alert["severity"] in _LOUD
                if loud and self.fault.at_ns < line.at_ns < self._end_ns:
                    yield Told(line.at_ns, alert)


def _accused(alert: Mapping[str, Any]) -> str:
    culprit = alert.get("culprit") or {}
    words = [culprit.get("task", ""), culprit.get("context", ""), culprit.get("module", ""), alert["summary"]]
    return " ".join(map(str, [*words, *culprit.get("stack", ())]))
