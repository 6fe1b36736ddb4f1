"""Memory that the agent and its sentinels share. Nobody ever waits for it: there is no lock in it.

It lies in one anonymous mapping that every process forked later has too. A word is written at once; what is longer
has a number before it that is odd while it changes.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Mapping
from hashlib import blake2b

import numpy as np

from tracer.alerts.alert import Alert, Severity, State, Subject

__all__ = ["AGENT", "Board"]

_ROWS, _WAYS = 4096, 4
_MARK = np.dtype([("key", "u8"), ("rank", "u8"), ("time_ns", "u8")])
_SENTINEL = np.dtype([("beat_ns", "u8"), ("told", "u8"), ("dropped", "u8"), ("late", "u8")])
_MOST_SENTINELS = 8
#: Who holds alerts besides the sentinels, which go by their numbers.
AGENT = _MOST_SENTINELS
_SETTINGS_BYTES = 32 << 10
#: What was delivered is delivered again after so long: it is a reminder then.
_REMINDER_NS = 60_000_000_000


class Board:
    """What was delivered to which sink, the kernel's settings, and a sign of life of each sentinel.

    ``sentinels``, shape ``(8,)``: ``beat_ns`` of the latest turn, alerts ``told`` and ``dropped``, turns that came
    ``late``.
    """

    def __init__(self) -> None:
        marks, lives = _ROWS * _MARK.itemsize, _MOST_SENTINELS * _SENTINEL.itemsize
        self._memory = mmap.mmap(-1, marks + lives + 16 + _SETTINGS_BYTES)
        self._marks = np.frombuffer(self._memory, _MARK, _ROWS)
        self.sentinels = np.frombuffer(self._memory, _SENTINEL, _MOST_SENTINELS, marks)
        # The number of changes, times two, and the length of the text behind.
        self._control = np.frombuffer(self._memory, "u8", 2, marks + lives)
        self._text_at = marks + lives + 16
        self._settings: Mapping[str, str] = {}
        self._settings_number = 0

    def is_told(self, place: int, alert: Alert, now_ns: int) -> bool:
        """Return whether sink number ``place`` has had this news, or better, within the last minute.

        Better is a higher severity, and more known of the culprit, or recorded of it. That a countdown is taken back is
        news.
        """
        key = _key(f"sink {place} {_said(alert)}", alert)
        mark = self._marks[self._row(key)]
        fresh = now_ns - int(mark["time_ns"]) < _REMINDER_NS
        return bool(mark["key"] == key and mark["rank"] >= _rank(alert) and fresh)

    def mark_told(self, place: int, alert: Alert, now_ns: int) -> None:
        """Note that sink number ``place`` has it: only once it has."""
        self._mark(_key(f"sink {place} {_said(alert)}", alert), _rank(alert), now_ns)

    def hold(self, holder: int, told: Iterable[Alert], firing: Iterable[Alert], until_ns: int) -> None:
        """Note which alerts ``holder`` (a sentinel's number, or ``AGENT``) sees fire, and which of ``told`` are over.

        Whoever freezes holds them until ``until_ns``.
        """
        for alert in told:
            if alert.state is State.RESOLVED:
                self._mark(_key(f"holder {holder}", alert), 0, 0)
        for alert in firing:
            self._mark(_key(f"holder {holder}", alert), 0, until_ns)

    def is_held(self, alert: Alert, now_ns: int) -> bool:
        """Return whether any process sees this alert fire still: it is not over then."""
        keys = [_key(f"holder {holder}", alert) for holder in range(AGENT + 1)]
        marks = [(key, self._marks[self._row(key)]) for key in keys]
        return any(mark["key"] == key and mark["time_ns"] > now_ns for key, mark in marks)

    def put_pages(self, told: Iterable[Alert], firing: Iterable[Alert], until_ns: int) -> None:
        """Show the sentinels, until then, what the agent pages; the agent alone calls this.

        Not what is ``told`` only now: whoever freezes before it is sent has paged nobody.
        """
        new = {alert.id for alert in told}
        for alert in firing:
            if alert.severity is Severity.PAGE and not alert.shadow and alert.id not in new:
                self._mark(_page(alert.rule, alert.condition.subject), 0, until_ns)

    def is_paged(self, rule: str, subject: Subject, now_ns: int) -> bool:
        """Return whether the agent pages this rule's alert about ``subject``."""
        key = _page(rule, subject)
        mark = self._marks[self._row(key)]
        return bool(mark["key"] == key and mark["time_ns"] > now_ns)

    def put_settings(self, settings: Mapping[str, str]) -> None:
        """Show the kernel's settings to the sentinels; the agent alone calls this."""
        if settings == self._settings:
            return
        text = json.dumps(dict(settings)).encode()
        if len(text) > _SETTINGS_BYTES:
            return
        self._control[0] += 1
        self._control[1] = len(text)
        self._memory[self._text_at : self._text_at + len(text)] = text
        self._control[0] += 1
        self._settings = dict(settings)

    def settings(self) -> Mapping[str, str]:
        """Return the kernel's settings as the agent saw them last."""
        number = int(self._control[0])
        if number == self._settings_number or number & 1:
            return self._settings
        text = self._memory[self._text_at : self._text_at + min(int(self._control[1]), _SETTINGS_BYTES)]
        if int(self._control[0]) == number:
            self._settings, self._settings_number = json.loads(text), number
        return self._settings

    def _mark(self, key: int, rank: int, time_ns: int) -> None:
        mark = self._marks[self._row(key)]
        # The key last: whoever looks meanwhile finds another alert's mark or none, and delivers twice.
        mark["key"] = 0
        mark["rank"], mark["time_ns"] = rank, time_ns
        mark["key"] = key

    def _row(self, key: int) -> int:
        """Return where a key's mark is, or else may be: in place of the oldest of a few."""
        first = key % (_ROWS // _WAYS) * _WAYS
        ways = self._marks[first : first + _WAYS]
        found = np.flatnonzero(ways["key"] == key)
        return first + int(found[0] if len(found) else np.argmin(ways["time_ns"]))


def _key(what: str, alert: Alert) -> int:
    return _hash(f"{what}\0{alert.id}")


def _said(alert: Alert) -> str:
    """Return what is told: its state, and of what fires, since when and whether there is a countdown to a panic."""
    if alert.state is State.RESOLVED:
        return str(alert.state.value)
    return f"{alert.state.value} {alert.condition.since_ns} {alert.says_panic}"


def _page(rule: str, subject: Subject) -> int:
    return _hash(f"page\0{rule}\0{subject.kind}\0{subject.name}")


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little") or 1


def _rank(alert: Alert) -> int:
    culprit = alert.condition.culprit
    known = 0
    if culprit:
        # Addresses are names to come.
        named = bool(culprit.stack) and not any(frame.startswith("0x") for frame in culprit.stack)
        known = 1 + bool(culprit.stack) + named
    return 8 * alert.severity + 4 * (alert.evidence is not None) + known
