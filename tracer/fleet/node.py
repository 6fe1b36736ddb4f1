"""What the receiver knows of one node: who speaks for it, its last intervals and alerts."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace

from tracer.alerts.alert import Alert, Culprit, Severity, State
from tracer.fleet.bucket import Bucket
from tracer.fleet.intake import Interval
from tracer.recording.frames import Kind
from tracer.recording.greeting import Hello

__all__ = ["AGENT", "Kept", "Node", "Speaker"]

#: The process of a node that sees everything, by its source.
AGENT = "agent"
_MOST_IDS = 256
_LAST_ALERTS = 8
_MOST_SPEAKERS = 64
#: Frames that a node may send: per interval of whoever has the shortest, a second at least, and at once. The agent
#: sends two an interval, a sentinel one; a stream that was interrupted begins with at most 80 alerts.
_PER_INTERVAL = 4
_PER_SECOND = 20.0
_BURST = 256
_OBJECTS = 1024  # bytes of Python objects around a kept frame, roughly


@dataclass
class Speaker:
    """One process of a node (the agent, a sentinel). ``heard_ns``: its last word. ``gone``: it said goodbye."""

    interval_ns: int
    heard_ns: int = 0
    dropped: int = 0
    gone: bool = False


@dataclass(frozen=True)
class Kept:
    """An interval with the receiver's time of its arrival; ``size``: the memory that it takes, roughly."""

    at_ns: int
    interval: Interval

    @property
    def size(self) -> int:
        return len(self.interval.frame) + _OBJECTS


@dataclass(frozen=True)
class _Told:
    """What was told of one occurrence: enough to know news from what is known, and small.

    ``source``: who told last that it fires. ``evident``: whether what was recorded of it has been told.
    """

    state: State
    severity: Severity
    sequence: int
    at_ns: int
    culprit: Culprit | None
    source: str
    says_panic: bool = False
    evident: bool = False


@dataclass
class Node:
    """A node by the name that it is told by. Times are the receiver's CLOCK_MONOTONIC.

    Attributes:
        boot_id: of the boot that spoke last.
        heard_ns, heard_unix_ns: its last word; the latter by the receiver's wall clock. Where there is an agent, only
            that one's counts: sentinels that outlive it do not see all.
        speakers: its processes by their source.
        kept: the last intervals, oldest first.
        size: bytes they take.
        last: the last alerts with their times.
        silent: the dead-man alert, while it fires.
    """

    name: str
    boot_id: str
    heard_ns: int
    heard_unix_ns: int
    speakers: dict[str, Speaker] = field(default_factory=dict)
    kept: deque[Kept] = field(default_factory=deque)
    size: int = 0
    last: deque[tuple[int, Alert]] = field(default_factory=lambda: deque(maxlen=_LAST_ALERTS))
    silent: Alert | None = None
    _frames: Bucket = field(default_factory=lambda: Bucket(_BURST, _PER_SECOND, time.monotonic_ns()))
    _alerts: Bucket = field(default_factory=lambda: Bucket(_BURST, _PER_SECOND, time.monotonic_ns()))
    _told: OrderedDict[str, _Told] = field(default_factory=OrderedDict)

    def greet(self, hello: Hello) -> None:
        """Expect the process to speak from now on; those of an earlier boot are over."""
        if hello.boot_id != self.boot_id:
            self.boot_id = hello.boot_id
            self.speakers.clear()
        if hello.source not in self.speakers and len(self.speakers) >= _MOST_SPEAKERS:
            del self.speakers[next(iter(self.speakers))]
        self.speakers[hello.source] = Speaker(hello.interval_ns, dropped=hello.dropped)
        shortest_ns = min(speaker.interval_ns for speaker in self.speakers.values())
        self._frames.per_second = max(_PER_SECOND, _PER_INTERVAL * 1e9 / shortest_ns)

    def admits(self, kind: int, now_ns: int) -> bool:
        """Return whether it may send one more frame of this kind; too many of others don't keep alerts out."""
        return (self._alerts if kind == Kind.ALERT else self._frames).takes(now_ns)

    def hears(self, source: str, now_ns: int) -> bool:
        """Note a word of a process; return whether it is one that says that the node is well."""
        if source in self.speakers:
            self.speakers[source].heard_ns = now_ns
        agent = self.speakers.get(AGENT)
        return source == AGENT or agent is None or agent.gone

    @property
    def expected(self) -> bool:
        """Whether any of its processes should be speaking."""
        return any(not speaker.gone for speaker in self.speakers.values())

    @property
    def interval_ns(self) -> int:
        """The longest interval of those that should be speaking."""
        return max((speaker.interval_ns for speaker in self.speakers.values() if not speaker.gone), default=0)

    def keep(self, interval: Interval, now_ns: int) -> int:
        """Keep an interval; return the bytes that it takes."""
        kept = Kept(now_ns, interval)
        self.kept.append(kept)
        self.size += kept.size
        return kept.size

    def forget_oldest(self) -> int:
        """Give up the oldest interval; return the bytes that it took."""
        size = self.kept.popleft().size
        self.size -= size
        return size

    def news(self, alert: Alert, now_ns: int) -> Alert | None:
        """Return the alert, with what is known of it from before, if it says anything new; else None.

        The agent and every sentinel tell the same occurrence under one id, each with a sequence of its own.
        """
        culprit, sequence = alert.condition.culprit, alert.sequence
        before = self._told.get(alert.id)
        if before is not None:
            if not _is_new(before, alert) or (alert.state is State.RESOLVED and not self._ends(before, alert)):
                if alert.state is before.state is State.FIRING:
                    self._told[alert.id] = replace(before, source=alert.source)
                return None
            culprit = before.culprit if _learnt(culprit, before.culprit) else culprit
            sequence = max(before.sequence, sequence)
            alert = replace(alert, sequence=sequence, condition=replace(alert.condition, culprit=culprit))
        alert = replace(alert, node=self.name)
        evident = alert.evidence is not None or (before is not None and before.evident)
        kept = None if alert.state is State.RESOLVED else culprit
        self._told[alert.id] = _Told(
            alert.state, alert.severity, sequence, alert.at_ns, kept, alert.source, alert.says_panic, evident
        )
        self._told.move_to_end(alert.id)
        if len(self._told) > _MOST_IDS:
            self._told.popitem(last=False)
        self.last.append((now_ns, alert))
        return alert

    def _ends(self, before: _Told, alert: Alert) -> bool:
        """Return whether who says that it is over may: the agent, who told it last, or anyone when that one is gone."""
        teller = self.speakers.get(before.source)
        return alert.source in (AGENT, before.source) or teller is None or teller.gone


def _is_new(before: _Told, now: Alert) -> bool:
    if now.state is not before.state:
        # What one process has resolved another may still tell as firing, from before.
        return now.state is State.RESOLVED or now.at_ns > before.at_ns
    if now.state is State.RESOLVED:
        return now.evidence is not None and not before.evident
    learnt = _learnt(before.culprit, now.condition.culprit)
    learnt = learnt or (now.evidence is not None and not before.evident)
    otherwise = now.says_panic != before.says_panic and now.at_ns > before.at_ns
    return learnt or otherwise or now.severity > before.severity or now.sequence > before.sequence


def _learnt(before: Culprit | None, now: Culprit | None) -> bool:
    """Return whether ``now`` knows who did it, or the stack, and ``before`` did not."""
    return now is not None and (before is None or (bool(now.stack) and not before.stack))
